// One model's answers: how many questions are right, and the bars of the chosen one.

import { answers, score } from "../adaptation.js";
import { h, onWidth, setText } from "../parts/dom.js";
import { percent, plural } from "../parts/format.js";
import { key } from "../parts/styles.js";
import { classById, queryById, state } from "../store.js";
import { barChart } from "./bars.js";

/** {element, update()} */
export function makeModelPanel(model, style) {
  let width = 0;
  const big = h("p", { class: "big" });
  const words = h("p", { class: "words" });
  const bars = h("div", { class: "plot" });
  const line = h("p", { class: "problem", role: "status" });
  const auto = h("p", { class: "note" });
  const element = h(
    "article",
    { class: `model ${style.colour}`, "aria-label": model.label, "data-model": model.name },
    h("h3", {}, key(style), model.label, h("span", { class: "model-name" }, model.name)),
    h("div", { class: "score" }, big, words),
    bars,
    auto,
    line,
  );
  onWidth(bars, (now) => {
    width = now;
    update();
  });

  function update() {
    const result = state.results.get(model.name) ?? { status: "idle", message: "" };
    const { shown } = result;
    const isBusy = result.status === "running" || result.status === "waiting";
    element.setAttribute("aria-busy", String(isBusy));
    element.dataset.status = result.status;
    setText(line, model.error ?? (isBusy ? waitingLine(result) : result.message) ?? "");
    showScore(shown);
    const question = queryById(state.chosen);
    const chart = shown && question && width > 0 ? barChart(result, style, width, question) : null;
    if (chart) bars.replaceChildren(chart);
    else if (!shown || !question) bars.replaceChildren();
    setText(auto, shown?.auto ? `Auto takes ${plural(shown.auto.steps, "step")}: ${shown.auto.why}` : "");
  }

  function showScore(shown) {
    const now = score(shown, state.step);
    const answer = answers(shown, state.step).get(state.chosen);
    setText(big, now === null ? (classById(answer)?.name ?? "–") : percent(now.right / now.of));
    big.classList.toggle("in-words", now === null);
    setText(words, sentence(shown, now));
  }

  return { element, update };
}

function waitingLine(result) {
  if (result.status !== "waiting") return "";
  return result.ahead > 0 ? `Waiting: ${plural(result.ahead, "adaptation")} before this one.` : "Waiting for its turn.";
}

function sentence(shown, now) {
  if (!shown?.steps[state.step]) return "";
  const after = state.step === 0 ? "before the first step" : `after ${plural(state.step, "step")}`;
  if (now === null) return state.queries.length === 0 ? "" : `is the answer ${after}`;
  const given = [...answers(shown, state.step).values()];
  const counts = given.map((id) => given.filter((other) => other === id).length);
  const share = Math.max(...counts) / given.length;
  const classes = shown.classIds.length;
  const stuck = given.length >= 4 && share > Math.max(0.6, 1.7 / classes) ? `; ${percent(share)} of all answers are one class` : "";
  return `${now.right} of ${now.of} right ${after}${stuck}`;
}

