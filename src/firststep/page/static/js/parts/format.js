// Numbers as people read them.

export const percent = (share) => `${Math.round(100 * share)}\u00a0%`;

/** 0.97077 → "0.971" */
export const short = (number) => (Number.isFinite(number) ? String(Number(number.toPrecision(3))) : "–");

/** 149000 → "149,000"; 51.8 → "52"; 1.2e9 → "1.2 × 10⁹" */
export function large(number) {
  if (number === null || number === undefined || Number.isNaN(number)) return "–";
  if (!Number.isFinite(number)) return "∞";
  if (number >= 1e7) return power(number);
  if (number < 10) return number.toPrecision(2);
  return Math.round(Number(number.toPrecision(3))).toLocaleString("en");
}

function power(number) {
  const exponent = Math.floor(Math.log10(number));
  return `${(number / 10 ** exponent).toFixed(1)} × 10${superscript(exponent)}`;
}

export function superscript(number) {
  return [...String(number)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit] ?? "⁻").join("");
}

/** As people write it at the beginning of a sentence. */
export const written = (label) => label.replace(/\b(maml|fomaml|anil|boil)\b/g, (name) => name.toUpperCase());

/** At most so many letters; what is left out shows as "…". */
export const shortened = (text, letters) => (text.length > letters + 1 ? `${text.slice(0, letters)}…` : text);

export const plural = (count, word, many = `${word}s`) => `${count} ${count === 1 ? word : many}`;

export function duration(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
