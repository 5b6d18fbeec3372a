// Curves of the ticked runs: by inner step at the latest validation, and over training.

import { h, newId, onWidth } from "../parts/dom.js";
import { lineChart } from "../parts/chart.js";
import { large, percent } from "../parts/format.js";
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

const words = (series, text) => series.map((one) => `${one.name}: ${one.points.filter(([, y]) => y !== null).map(([x, y]) => `${x} ${text(y)}`).join(", ")}`).join(". ");
const longest = (rows) => Math.max(0, ...rows.map((row) => row?.length ?? 0));
const whole = (count) => Array.from({ length: count }, (_, place) => place);

export function makeRunCharts() {
  let runs = [];
  const redraw = () => parts.forEach((part) => part.update());
  const step = chooser("after step", redraw);
  const stage = chooser("at stage", redraw);

  const latest = (field) => runs.map((run) => ({ ...run, points: (run[field].at(-1) ?? []).map((value, place) => [place, value]) }));
  const overTraining = (field, place) =>
    runs.map((run) => ({ ...run, points: run.updates.map((update, number) => [update, run[field][number]?.[place]]).filter(([, value]) => value !== undefined && value !== null) }));

  const accuracyAxis = { high: 1, ticks: [0, 0.25, 0.5, 0.75, 1], text: percent };
  const conditionAxis = { log: true, low: Infinity }; // from the smallest that there is
  const chart = (series, width, x, y, text) => lineChart({ width, height: HEIGHT, series, x, y, label: words(series, text) });
  const ticks = (field) => whole(Math.max(2, longest(runs.map((run) => run[field].at(-1)))));

  const parts = [
    figure("Accuracy at every step, latest validation", (width) => chart(latest("accuracy"), width, { label: "inner steps", ticks: ticks("accuracy") }, accuracyAxis, percent)),
    figure("Accuracy in training", (width) => chart(overTraining("accuracy", step.value()), width, { label: "meta-updates" }, accuracyAxis, percent), step.element),
    figure("Condition number at every stage, latest validation", (width) => chart(latest("condition_number"), width, { label: "stage (steps taken before)", ticks: ticks("condition_number") }, conditionAxis, large)),
    figure("Condition number in training", (width) => chart(overTraining("condition_number", stage.value()), width, { label: "meta-updates" }, conditionAxis, large), stage.element),
  ];
  const legend = h("p", { class: "legend" });
  const element = h("section", { class: "panel", "aria-label": "Curves of the ticked runs", hidden: true }, legend, h("div", { class: "figures" }, parts.map((part) => part.element)));

  return {
    element,
    show(now) {
      runs = now.filter((run) => run.updates.length > 0);
      element.hidden = runs.length === 0;
      if (runs.length === 0) return;
      step.offer(longest(runs.flatMap((run) => run.accuracy)), 1);
      stage.offer(longest(runs.flatMap((run) => run.condition_number)), 0);
      legend.replaceChildren(...runs.map((run) => h("span", {}, key(run.style), run.name)));
      redraw();
    },
  };
}
