// The section "Ask": questions, the step slider, a panel for each model, accuracy over steps.

import { score } from "../adaptation.js";
import { h, onWidth, oncePerFrame } from "../parts/dom.js";
import { percent } from "../parts/format.js";
import { lineChart } from "../parts/chart.js";
import { key, stylesFor } from "../parts/styles.js";
import { choose, on, state, takesSteps, workingModels } from "../store.js";
import { pastedFiles } from "../teach/intake.js";
import { makeModelPanel } from "./model-panel.js";
import { makeQuestions } from "./questions.js";
import { makeSteps } from "./steps.js";

/** Rings at the number of steps that `auto` takes; models that agree share the word. */
function autoMarks(series) {
  const marked = series.filter((one) => one.points[one.auto]);
  return marked.map((one, place) => {
    const isFirst = marked.findIndex((other) => other.auto === one.auto) === place;
    return { x: one.auto, y: one.points[one.auto][1], style: one.style, text: isFirst ? "auto" : "" };
  });
}

export function mountAsk(section) {
  let panels = [];
  let width = 0;
  const questions = makeQuestions();
  const models = h("div", { class: "models" });
  const plot = h("div", { class: "plot" });
  const legend = h("p", { class: "legend" });
  const figure = h("figure", { id: "accuracy" }, h("figcaption", {}, h("strong", {}, "Accuracy over steps"), legend), plot);
  const steps = h(
    "div",
    { class: "with-steps" },
    makeSteps(),
    h("p", { class: "note" }, "Bars: the probability of each class after so many gradient steps. The full colour is the answer, a tick the truth."),
  );
  section.append(
    h("div", { class: "panel-head" }, h("h2", { id: "ask-title" }, h("span", { class: "number", "aria-hidden": "true" }), "Ask")),
    questions.element,
    steps,
    models,
    figure,
  );
  onWidth(plot, (now) => {
    width = now;
    drawAccuracy();
  });

  function build() {
    steps.hidden = !takesSteps();
    const styles = stylesFor(state.models);
    panels = state.models.map((model) => makeModelPanel(model, styles.get(model.name)));
    models.replaceChildren(...panels.map((panel) => panel.element));
    legend.replaceChildren(...workingModels().map((model) => h("span", {}, key(styles.get(model.name)), model.label)));
    update();
  }

  function drawAccuracy() {
    if (width === 0) return;
    const styles = stylesFor(state.models);
    const series = workingModels().map((model) => {
      const shown = state.results.get(model.name)?.shown;
      const scores = (shown?.steps ?? []).map((_, step) => score(shown, step));
      const points = scores.flatMap((one, step) => (one === null ? [] : [[step, one.right / one.of]]));
      return { name: model.label, style: styles.get(model.name), points, auto: shown?.auto?.steps };
    });
    figure.hidden = series.every((one) => one.points.length === 0);
    if (figure.hidden) return plot.replaceChildren();
    plot.replaceChildren(
      lineChart({
        width,
        height: 210,
        series,
        x: { label: "gradient steps", high: state.limits.steps, ticks: Array.from({ length: state.limits.steps + 1 }, (_, step) => step) },
        y: { high: 1, ticks: [0, 0.25, 0.5, 0.75, 1], text: percent },
        cursor: state.step,
        marks: autoMarks(series),
        pick: (step) => choose({ step }),
        label: series.map((one) => `${one.name}: ${one.points.map(([step, share]) => `step ${step} ${percent(share)}`).join(", ")}`).join(". "),
      }),
    );
  }

  const update = oncePerFrame(() => {
    panels.forEach((panel) => panel.update());
    drawAccuracy();
  });

  on("models", build);
  on("results choice examples labels", update);
  build();

  return function paste(event) {
    const found = pastedFiles(event);
    if (found.length > 0) questions.take(found);
    return found.length > 0;
  };
}
