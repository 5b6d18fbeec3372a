// From numbers to pixels, and where the ticks are.

import { superscript } from "./format.js";

/** {at(value), ticks: [{value, text}]} over [low, high] on pixels [from, to]. */
export function linear(low, high, from, to, values, text = String) {
  const at = (value) => from + ((value - low) / (high - low || 1)) * (to - from);
  return { at, ticks: values.map((value) => ({ value, text: text(value) })) };
}

/** The same on a logarithmic axis, with ticks at powers of ten. */
export function logarithmic(low, high, from, to) {
  const bottom = Math.floor(Math.log10(low) + 1e-9);
  const top = Math.max(bottom + 1, Math.ceil(Math.log10(high) - 1e-9));
  const at = (value) => from + ((Math.log10(Math.max(value, 10 ** bottom)) - bottom) / (top - bottom)) * (to - from);
  const every = Math.ceil((top - bottom) / 5);
  const ticks = [];
  for (let power = bottom; power <= top; power += every) {
    ticks.push({ value: 10 ** power, text: power === 0 ? "1" : power === 1 ? "10" : `10${superscript(power)}` });
  }
  return { at, ticks };
}

/** At most `most` round numbers from 0 to high, at least `least` apart. */
export function roundNumbers(high, least = 0, most = 6) {
  const raw = Math.max(high, 1e-9) / most;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max(least, [1, 2, 5, 10].find((factor) => factor * unit >= raw) * unit);
  return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, place) => place * step);
}
