// A line chart. Drawn at the width that it has, so that letters keep their size on every screen.

import { s } from "./dom.js";
import { linear, logarithmic, roundNumbers } from "./scale.js";
import { marker } from "./styles.js";

const MARGIN = { left: 46, right: 14, top: 12, bottom: 36 };

/**
 * series: [{name, style, points: [[x, y]]}]; x: {label, ticks?, high?}; y: {label, log?, low?, high?, text?};
 * cursor: an x with a line; marks: [{x, y, style, text}] circled points; pick(x) when a place is clicked.
 */
export function lineChart({ width, height, series, x, y, cursor, marks = [], pick, label }) {
  const points = series.flatMap((one) => one.points).filter(([, value]) => Number.isFinite(value));
  const right = Math.max(x.high ?? 1, ...points.map(([value]) => value));
  const bottom = height - MARGIN.bottom;
  const across = linear(x.low ?? 0, right, MARGIN.left, width - MARGIN.right, x.ticks ?? roundNumbers(right, 1));
  const up = verticalScale(y, points, bottom);
  const svg = s("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  svg.append(...grid(across, up, width, bottom), ...titles(x, y, width, height));
  if (cursor !== undefined) svg.append(s("line", { class: "cursor", x1: across.at(cursor), x2: across.at(cursor), y1: MARGIN.top, y2: bottom }));
  for (const one of series) svg.append(curve(one, across, up));
  for (const mark of marks) svg.append(ring(mark, across.at(mark.x), up.at(mark.y), width));
  if (pick) listen(svg, across, right, pick);
  return svg;
}

function verticalScale(y, points, bottom) {
  const values = points.map(([, value]) => value);
  if (y.log) {
    const positive = values.filter((value) => value > 0);
    const low = Math.min(y.low ?? 1, ...positive);
    return logarithmic(Number.isFinite(low) ? low : 1, Math.max(y.high ?? 10, ...positive), bottom, MARGIN.top);
  }
  const high = y.high ?? Math.max(...values, 1e-9);
  return linear(y.low ?? 0, high, bottom, MARGIN.top, y.ticks ?? roundNumbers(high), y.text);
}

function grid(across, up, width, bottom) {
  const lines = up.ticks.flatMap(({ value, text }) => [
    s("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: up.at(value), y2: up.at(value) }),
    s("text", { class: "tick", x: MARGIN.left - 7, y: up.at(value) + 4, "text-anchor": "end" }, text),
  ]);
  const steps = across.ticks.map(({ value, text }) =>
    s("text", { class: "tick", x: across.at(value), y: bottom + 16, "text-anchor": "middle" }, text),
  );
  return [...lines, ...steps];
}

function titles(x, y, width, height) {
  return [
    s("text", { class: "axis", x: (MARGIN.left + width) / 2, y: height - 4, "text-anchor": "middle" }, x.label),
    y.label ? s("text", { class: "axis", x: 2, y: 9 }, y.label) : null,
  ].filter(Boolean);
}

function curve({ style, points }, across, up) {
  const places = points
    .filter(([, value]) => Number.isFinite(value))
    .map(([x, value]) => [across.at(x), up.at(value)]);
  const every = Math.ceil(places.length / 25); // markers of long curves would hide them
  return s(
    "g",
    { class: style.colour },
    s("polyline", { class: "line", points: places.map((place) => place.join()).join(" "), "stroke-dasharray": style.dash }),
    places.filter((_, place) => place % every === 0 || place === places.length - 1).map(([x, y]) => marker(style.marker, x, y)),
  );
}

function ring({ style, text }, x, y, width) {
  const isRight = x > width - 70;
  return s(
    "g",
    { class: style.colour },
    s("circle", { class: "ring", cx: x, cy: y, r: 8.5 }),
    s("text", { class: "mark", x: x + (isRight ? -12 : 12), y: y < 40 ? y + 18 : y - 8, "text-anchor": isRight ? "end" : "start" }, text),
  );
}

function listen(svg, across, right, pick) {
  svg.classList.add("pickable");
  svg.addEventListener("click", (event) => {
    const place = event.clientX - svg.getBoundingClientRect().left;
    const [from, to] = [across.at(0), across.at(right)];
    pick(Math.min(right, Math.max(0, Math.round(((place - from) / (to - from)) * right))));
  });
}
