// The section "See why": condition number, spectrum and the walk in a bowl, for each model.

import { h, onWidth, oncePerFrame } from "../parts/dom.js";
import { lineChart } from "../parts/chart.js";
import { large } from "../parts/format.js";
import { key, stylesFor } from "../parts/styles.js";
import { choose, on, state, takesSteps, workingModels } from "../store.js";
import { conditionSentence, spectrumSentence, walkSentence } from "./sentences.js";
import { walkPicture } from "./walk.js";

const HEIGHT = 220;

/** A captioned plot with one sentence for each model. */
function figure(id, title, draw) {
  const plot = h("div", { class: "plot" });
  const legend = h("p", { class: "legend" });
  const words = h("ul", { class: "sentences" });
  const element = h("figure", { id }, h("figcaption", {}, h("strong", {}, title), legend), plot, words);
  let width = 0;
  const update = () => width > 0 && draw({ plot, legend, words, width, title: element.querySelector("strong") });
  onWidth(plot, (now) => {
    width = now;
    update();
  });
  return { element, update };
}

/** The models that have something to show at the chosen step: [{model, style, shown, message}] */
function ready() {
  const styles = stylesFor(state.models);
  return workingModels().flatMap((model) => {
    const shown = state.results.get(model.name)?.shown;
    const message = shown?.steps[Math.min(state.step, shown.steps.length - 1)];
    return message ? [{ model, style: styles.get(model.name), shown, message }] : [];
  });
}

const keys = (found) => found.map(({ model, style }) => h("span", {}, key(style), model.label));
const items = (lines) => lines.map((line) => h("li", {}, line));
const steps = () => Array.from({ length: state.limits.steps + 1 }, (_, step) => step);

function drawCondition({ plot, legend, words, width }) {
  const found = ready();
  legend.replaceChildren(...keys(found));
  const series = found.map(({ model, style, shown }) => ({
    name: model.label,
    style,
    points: shown.steps.map((message, step) => [step, message.condition_number]),
  }));
  plot.replaceChildren(
    lineChart({
      width,
      height: HEIGHT,
      series,
      x: { label: "gradient steps", high: state.limits.steps, ticks: steps() },
      y: { log: true, low: 1 },
      cursor: state.step,
      pick: (step) => choose({ step }),
      label: series.map((one) => `${one.name}: ${one.points.map(([step, value]) => `step ${step} ${large(value)}`).join(", ")}`).join(". "),
    }),
  );
  words.replaceChildren(...items(found.map(({ model, message }) => conditionSentence(model.label, message))));
}

function drawSpectrum({ plot, legend, words, width, title }) {
  const found = ready();
  title.textContent = `Eigenvalues, as shares of the largest, ${state.step === 0 ? "before the first step" : `after step ${state.step}`}`;
  legend.replaceChildren(...keys(found));
  const series = found.map(({ model, style, message }) => ({
    name: model.label,
    style,
    points: message.eigenvalues
      .map((value, place) => [place + 1, value / message.eigenvalues[0]])
      .filter(([, share]) => share > 1e-9), // rounding beyond
  }));
  const count = Math.max(1, ...found.map(({ message }) => message.eigenvalues.length));
  plot.replaceChildren(
    lineChart({
      width,
      height: HEIGHT,
      series,
      x: { label: "eigenvalue, from the largest", low: 1, high: count, ticks: spectrumTicks(count) },
      y: { log: true, low: 0.1, high: 1 },
      label: series.map((one) => `${one.name}: from 1 down to ${one.points.at(-1)?.[1].toExponential(1)}`).join(". "),
    }),
  );
  words.replaceChildren(...items(found.map(({ model, message }) => spectrumSentence(model.label, message))));
}

function spectrumTicks(count) {
  const every = Math.max(1, Math.ceil(count / 6 / 5) * 5);
  return count < 8 ? Array.from({ length: count }, (_, place) => place + 1) : [1, ...Array.from({ length: Math.floor(count / every) }, (_, place) => (place + 1) * every)];
}

/** One picture for each model, side by side. */
function makeWalks() {
  let width = 0;
  const walks = h("div", { class: "walks" });
  const element = h(
    "figure",
    { id: "walks" },
    h(
      "figcaption",
      {},
      h("strong", {}, "What that does to gradient descent"),
      h("p", { class: "note" }, "A bowl as steep and as flat as the steepest and the flattest direction of this support set, before the first step; the step length is 1.5 divided by the largest curvature, for all models alike. The cross is where it should end, the ring the step chosen above."),
    ),
    walks,
  );
  const update = () => {
    if (width === 0) return;
    const found = ready().filter(({ shown }) => Number.isFinite(shown.steps[0].condition_number));
    const columns = width > 520 ? Math.min(Math.max(found.length, 2), 3) : 1;
    const wide = Math.floor((width - 18 * (columns - 1)) / columns);
    walks.replaceChildren(
      ...found.map(({ model, style, shown }) => {
        const { condition_number: conditionNumber } = shown.steps[0];
        const sentence = walkSentence(conditionNumber);
        const label = `${model.label}. ${sentence}`;
        return h(
          "div",
          { class: style.colour },
          h("h3", {}, key(style), model.label),
          walkPicture({ conditionNumber, style, width: wide, step: state.step, label }),
          h("p", { class: "note" }, sentence),
        );
      }),
    );
  };
  onWidth(walks, (now) => {
    width = now;
    update();
  });
  return { element, update };
}

export function mountWhy(section) {
  const parts = [
    figure("condition", "Condition number over steps", drawCondition),
    figure("spectrum", "Eigenvalues", drawSpectrum),
    makeWalks(),
  ];
  const empty = h("p", { class: "note" }, "Nothing to see yet: teach at least two classes.");
  const figures = h("div", { class: "figures" }, parts.map((part) => part.element));
  section.append(
    h(
      "div",
      { class: "panel-head" },
      h("h2", { id: "why-title" }, h("span", { class: "number", "aria-hidden": "true" }), "See why"),
    ),
    h("p", { class: "note" }, "How steep the loss is in each direction that the classifier can learn, for these examples: if all are about equally steep, one step goes straight down."),
    empty,
    figures,
  );
  const update = oncePerFrame(() => {
    section.hidden = !takesSteps();
    empty.hidden = ready().length > 0;
    figures.hidden = !empty.hidden;
    if (!figures.hidden) parts.forEach((part) => part.update());
  });
  on("results choice models", update);
  update();
}
