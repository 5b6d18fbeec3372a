// Gradient descent on a bowl with two curvatures: the paper's Figure 1, with the curvatures of this support set.

import { s } from "../parts/dom.js";
import { marker } from "../parts/styles.js";

export const WALK_STEPS = 10;
const ANGLE = (25 * Math.PI) / 180; // of the valley, so that neither axis is special
const START = { flat: 1, steep: 0.3 };
const RATE = 1.5; // step length times the largest curvature: stable, and half of it is overshot
const CONTOURS = 14;
const HALF_WIDTH = 1.2;

/** Places after 0, 1, 2, ... steps along both directions; curvatures are 1 and 1 / conditionNumber. */
export function walk(conditionNumber) {
  return Array.from({ length: WALK_STEPS + 1 }, (_, step) => ({
    flat: START.flat * (1 - RATE / conditionNumber) ** step,
    steep: START.steep * (1 - RATE) ** step,
  }));
}

/** Share of the way along the valley that all steps together cover. */
export function covered(conditionNumber) {
  return 1 - walk(conditionNumber).at(-1).flat / START.flat;
}

export function walkPicture({ conditionNumber, style, width, step, label }) {
  const height = Math.round(width * 0.68);
  const unit = width / (2 * HALF_WIDTH);
  const at = ({ flat, steep }) => [
    width / 2 + unit * (flat * Math.cos(ANGLE) - steep * Math.sin(ANGLE)),
    height / 2 - unit * (flat * Math.sin(ANGLE) + steep * Math.cos(ANGLE)),
  ];
  const places = walk(conditionNumber).map(at);
  const degrees = (-ANGLE * 180) / Math.PI;
  const turned = { transform: `translate(${width / 2} ${height / 2}) rotate(${degrees})` };
  const contours = Array.from({ length: CONTOURS }, (_, place) => {
    // Equal distances between the lines along any straight way down.
    const narrow = (unit * 0.95 * (place + 1)) / CONTOURS;
    return s("ellipse", { class: "contour", rx: narrow * Math.sqrt(conditionNumber), ry: narrow });
  });
  const here = places[Math.min(step, WALK_STEPS)];
  return s(
    "svg",
    { class: `chart walk ${style.colour}`, width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    s("g", turned, contours),
    s("path", { class: "minimum", d: `M${width / 2 - 7} ${height / 2}h14M${width / 2} ${height / 2 - 7}v14` }),
    s("polyline", { class: "line", points: places.map((place) => place.join()).join(" "), "stroke-dasharray": style.dash }),
    places.map(([x, y]) => marker(style.marker, x, y, 3)),
    s("circle", { class: "ring", cx: here[0], cy: here[1], r: 8 }),
  );
}
