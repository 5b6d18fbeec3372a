// One question, one model: a row for each class with a bar after every number of steps.

import { address } from "../teach/pictures.js";
import { s } from "../parts/dom.js";
import { percent, shortened } from "../parts/format.js";
import { choose, classById, state } from "../store.js";

const ROW = 34;
const HEAD = 6;
const FOOT = 36;

/** The SVG, or null if this question has no answer yet. */
export function barChart(result, style, width, question) {
  const { shown } = result;
  const place = shown?.queryIds.indexOf(question.id) ?? -1;
  if (place < 0 || !shown.steps[0]) return null;
  const names = width < 330 ? 100 : width < 420 ? 116 : width < 640 ? 138 : 230;
  const values = 50;
  const steps = state.limits.steps;
  const wide = (width - names - values) / (steps + 1);
  const height = HEAD + ROW * shown.classIds.length + FOOT;
  const rows = shown.steps.map((step) => step?.probabilities[place]).filter(Boolean);
  const step = Math.min(state.step, rows.length - 1);
  const svg = s("svg", {
    class: `chart bars pickable ${style.colour}`,
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": inWords(rows[step], shown, step),
  });
  const left = names;
  const bottom = HEAD + ROW * shown.classIds.length;
  svg.append(s("rect", { class: "column", x: left + wide * state.step, y: 0, width: wide, height: bottom + 20, rx: 4 }));
  inOrderOfTeach(shown.classIds).forEach((id, place) => {
    const number = shown.classIds.indexOf(id);
    svg.append(...classRow({ id, number, place, shown, rows, step, question, left, wide, width }));
  });
  svg.append(...stepNumbers(steps, left, wide, bottom, shown.auto));
  svg.addEventListener("click", (event) => {
    const column = Math.floor((event.clientX - svg.getBoundingClientRect().left - left) / wide);
    if (column >= 0 && column <= steps) choose({ step: column });
  });
  return svg;
}

/** Models take classes by name, as `firststep adapt` does; the page shows them as the cards are. */
function inOrderOfTeach(classIds) {
  const cards = state.classes.map((one) => one.id).filter((id) => classIds.includes(id));
  return [...cards, ...classIds.filter((id) => !cards.includes(id))]; // removed a moment ago
}

function classRow({ id, number, place, shown, rows, step, question, left, wide, width }) {
  const top = HEAD + ROW * place;
  const base = top + ROW - 4;
  const full = ROW - 8;
  const one = classById(id);
  const first = one?.examples[0];
  const isTrue = question.label === id;
  const bars = rows.map((row, taken) => {
    const isWinner = row[number] === Math.max(...row);
    const tall = Math.max(1, full * row[number]);
    const gap = Math.min(3, wide / 6);
    return s("rect", { class: isWinner ? "bar winner" : "bar", x: left + wide * taken + gap, y: base - tall, width: wide - 2 * gap, height: tall, rx: 1.5 });
  });
  const letters = Math.floor((left - (isTrue ? 68 : 60)) / 8.2);
  const name = one?.name ?? shown.names[number];
  return [
    s("line", { class: "grid", x1: left, x2: width - 50, y1: base, y2: base }),
    first && s("image", { href: address(first.seen), x: 2, y: top + 3, width: 28, height: 28, class: "pixels" }),
    s("text", { class: isTrue ? "name true" : "name", x: 35, y: base - 8 }, shortened(name, letters), s("title", {}, name)),
    ...bars,
    s("text", { class: rows[step][number] === Math.max(...rows[step]) ? "value winner" : "value", x: width - 2, y: base - 7, "text-anchor": "end" }, percent(rows[step][number])),
    isTrue && s("path", { class: "tick-true", d: `M${left - 15} ${base - 12}l3.5 4l6 -8` }),
  ].filter(Boolean);
}

function stepNumbers(steps, left, wide, bottom, auto) {
  const middle = (place) => left + wide * (place + 0.5);
  const numbers = Array.from({ length: steps + 1 }, (_, place) =>
    s("text", { class: place === state.step ? "tick chosen" : "tick", x: middle(place), y: bottom + 15, "text-anchor": "middle" }, String(place)),
  );
  const mark = auto
    ? [
        s("path", { class: "auto", d: `M${middle(auto.steps)} ${bottom + 19}l4 6h-8z` }),
        s("text", { class: "auto", x: middle(auto.steps), y: bottom + 35, "text-anchor": "middle" }, "auto"),
      ]
    : [];
  return [...numbers, s("text", { class: "axis", x: 2, y: bottom + 15 }, "steps"), ...mark];
}

function inWords(row, shown, step) {
  const order = row.map((share, place) => [share, shown.names[place]]).sort(([a], [b]) => b - a);
  return `After step ${step}: ${order.map(([share, name]) => `${name} ${percent(share)}`).join(", ")}`;
}
