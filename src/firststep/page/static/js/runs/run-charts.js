// Curves of the ticked runs: by inner step at the latest validation, and over training.

import { h, newId, onWidth } from "../parts/dom.js";
import { lineChart } from "../parts/chart.js";
import { large, percent, short } from "../parts/format.js";
import { key } from "../parts/styles.js";

const HEIGHT = 230;

function figure(title, draw, control = null) {
  const plot = h("div", { class: "plot" });
  const element = h("figure", {}, h("figcaption", {}, h("strong", {}, title), control), plot);
  let width = 0;
  const update = () => width > 0 && plot.replaceChildren(draw(width));
  onWidth(plot, (now) => {
    width = now;
    update();
  });
  return { element, update };
}

/** A small number to choose: which inner step, which stage. */
function chooser(label, changed) {
  const select = h("select", { id: newId("which") });
  select.addEventListener("change", changed);
  return {
    element: h("span", { class: "field" }, h("label", { for: select.id }, label), select),
    value: () => Number(select.value || 0),
    offer(count, usual) {
      if (select.options.length === count) return;
      select.replaceChildren(...Array.from({ length: count }, (_, place) => h("option", { value: place }, String(place))));
      select.value = String(Math.min(usual, count - 1));
    },
  };
}

const words = (series, text) => series.map((one) => `${one.name}: ${one.points.filter(([, y]) => Number.isFinite(y)).map(([x, y]) => `${x} ${text(y)}`).join(", ")}`).join(". ");
const longest = (rows) => Math.max(0, ...rows.map((row) => row?.length ?? 0));
const whole = (count) => Array.from({ length: count }, (_, place) => place);

const runsBy = (runs) => Map.groupBy(runs, (run) => run.metric.title);

/** Two figures of one metric: by step at the latest validation, and over training at a chosen step. */
function makePair({ title, field, axis, text, place: { name, label, usual } }) {
  let runs = [];
  const redraw = () => parts.forEach((part) => part.update());
  const which = chooser(name, redraw);
  const latest = () => runs.map((run) => ({ ...run, points: (run[field].at(-1) ?? []).map((value, place) => [place, value]) }));
  const overTraining = (place) => runs.map((run) => ({ ...run, points: run.updates.map((update, number) => [update, run[field][number]?.[place]]) }));
  const chart = (series, width, x) => lineChart({ width, height: HEIGHT, series, x, y: axis, label: words(series, text) });
  const ticks = () => whole(Math.max(2, longest(runs.map((run) => run[field].at(-1)))));
  const parts = [
    figure(`${title}, latest validation`, (width) => chart(latest(), width, { label, ticks: ticks() })),
    figure(`${title} in training`, (width) => chart(overTraining(which.value()), width, { label: "meta-updates" }), which.element),
  ];
  return {
    elements: parts.map((part) => part.element),
    show(now) {
      runs = now;
      which.offer(longest(runs.flatMap((run) => run[field])), usual);
      redraw();
    },
  };
}

const STEP = { name: "after step", label: "inner steps", usual: 1 };
const STAGE = { name: "at stage", label: "stage (steps taken before)", usual: 0 };
const CONDITION = { title: "Condition number", field: "condition_number", axis: { log: true, low: Infinity }, text: large, place: STAGE };
const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** What is drawn of a run's main metric: its accuracy, or the error of a regression. */
function mainMetric({ title, percent: isShare }) {
  const axis = isShare ? { high: 1, ticks: [0, 0.25, 0.5, 0.75, 1], text: percent } : { text: short };
  return { title: capital(title), field: "main", axis, text: isShare ? percent : short, place: STEP };
}

export function makeRunCharts() {
  const pairs = new Map(); // title → its figures, which keep their chosen step
  const legend = h("p", { class: "legend" });
  const figures = h("div", { class: "figures" });
  const element = h("section", { class: "panel", "aria-label": "Curves of the ticked runs", hidden: true }, legend, figures);

  function show(wanted, runs) {
    if (!pairs.has(wanted.title)) pairs.set(wanted.title, makePair(wanted));
    const pair = pairs.get(wanted.title);
    pair.show(runs);
    return pair.elements;
  }

  return {
    element,
    show(now) {
      const runs = now.filter((run) => run.updates.length > 0);
      element.hidden = runs.length === 0;
      if (runs.length === 0) return;
      legend.replaceChildren(...runs.map((run) => h("span", {}, key(run.style), run.name)));
      const metrics = new Map(runs.map(({ metric }) => [metric.title, metric]));
      const shown = [...metrics.values()].flatMap((metric) => show(mainMetric(metric), runs.filter((run) => run.metric.title === metric.title)));
      const spectra = runs.filter((run) => longest(run.condition_number) > 0);
      if (spectra.length > 0) shown.push(...show(CONDITION, spectra));
      const isSame = shown.length === figures.children.length && shown.every((one, place) => one === figures.children[place]);
      if (!isSame) figures.replaceChildren(...shown);
    },
  };
}
