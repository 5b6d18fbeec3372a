// A model keeps its colour, marker and dashes wherever it is drawn: Okabe and Ito's palette, as in the figures of
// the library. Colours are classes of the style sheet, so that the dark theme has lighter ones.

import { s } from "./dom.js";

const STYLES = ["c-blue", "c-vermilion", "c-green", "c-pink", "c-orange", "c-sky"];
const MARKERS = ["circle", "square", "diamond", "triangle", "down", "cross"];
const DASHES = [null, "6 4", "8 3 2 3", null, "6 4", "8 3 2 3"];

const at = (place) => {
  const number = place % STYLES.length;
  return { colour: STYLES[number], marker: MARKERS[number], dash: DASHES[number] };
};

/** MAML is vermilion, the conditioned model blue, a shared head green; others get a free style. */
export function stylesFor(models) {
  const taken = new Set();
  return new Map(
    models.map((model) => {
      const trained = model.trained ?? {};
      const usual = (trained.conditioning ?? "none") === "none" ? 1 : trained.head === "shared" ? 2 : 0;
      const free = [usual, 0, 1, 2, 3, 4, 5].find((place) => !taken.has(place)) ?? taken.size;
      taken.add(free);
      return [model.name, at(free)];
    }),
  );
}

export const styleAt = at;

/** A marker's outline about (x, y). */
export function marker(kind, x, y, size = 4) {
  const r = size;
  const shapes = {
    circle: `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
    square: `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
    diamond: `M${x} ${y - 1.3 * r}l${1.2 * r} ${1.3 * r}l${-1.2 * r} ${1.3 * r}l${-1.2 * r} ${-1.3 * r}z`,
    triangle: `M${x} ${y - 1.2 * r}l${1.2 * r} ${2.2 * r}h${-2.4 * r}z`,
    down: `M${x} ${y + 1.2 * r}l${1.2 * r} ${-2.2 * r}h${-2.4 * r}z`,
    cross: `M${x - r} ${y - r}l${2 * r} ${2 * r}M${x + r} ${y - r}l${-2 * r} ${2 * r}`,
  };
  return s("path", { class: "marker", d: shapes[kind] });
}

/** The marker beside a name. */
export function key(style) {
  return s(
    "svg",
    { class: `key ${style.colour}`, viewBox: "0 0 28 14", width: 28, height: 14, "aria-hidden": "true" },
    s("line", { class: "line", x1: 1, y1: 7, x2: 27, y2: 7, "stroke-dasharray": style.dash }),
    marker(style.marker, 14, 7, 4),
  );
}
