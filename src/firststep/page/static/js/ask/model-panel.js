// One model's answers: how many questions are right, and the bars of the chosen one.

import { answers, isNone, rowsAt, score } from "../adaptation.js";
import { h, onWidth, setText } from "../parts/dom.js";
import { percent, plural } from "../parts/format.js";
import { key } from "../parts/styles.js";
import { classById, queryById, state } from "../store.js";
import { barChart } from "./bars.js";
import { reportBars } from "./report-bars.js";

/** {element, update()} */
export function makeModelPanel(model, style) {
  let width = 0;
  const big = h("p", { class: "big" });
  const words = h("p", { class: "words" });
  const bars = h("div", { class: "plot" });
  const line = h("p", { role: "status" });
  const auto = h("p", { class: "note" });
  const headline = h("div", { class: "score" }, big, words);
  const element = h(
    "article",
    { class: `model ${style.colour}`, "aria-label": model.label, "data-model": model.name },
    h("h3", {}, key(style), model.label, h("span", { class: "model-name" }, model.name)),
    headline,
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
    line.className = model.error || result.status === "error" ? "problem" : "note";
    setText(line, model.error ?? (isBusy ? waitingLine(result) : result.message) ?? "");
    showScore(shown);
    const question = queryById(state.chosen);
    const draw = model.takes_steps ? barChart : reportBars;
    const chart = shown && question && width > 0 ? draw(result, style, width, question) : null;
    if (chart) bars.replaceChildren(chart);
    else if (!shown || !question) bars.replaceChildren();
    setText(auto, shown?.auto ? `Auto takes ${plural(shown.auto.steps, "step")}: ${shown.auto.why}` : unusual(shown));
  }

  function showScore(shown) {
    const now = score(shown, state.step);
    const verdict = now === null ? answerInWords(shown) : { big: percent(now.right / now.of), words: sentence(shown, now), kind: "" };
    headline.hidden = !shown || state.queries.length === 0;
    if (verdict === null) return; // the last one stays until there is another, as the bars do
    setText(big, verdict.big);
    setText(words, verdict.words);
    big.className = `big ${verdict.kind}`;
  }

  return { element, update };
}

function waitingLine(result) {
  if (result.progress) return `Looking at picture ${result.progress.done} of ${result.progress.of} …`;
  if (result.status !== "waiting") return "";
  return result.ahead > 0 ? `Waiting: ${plural(result.ahead, "adaptation")} before this one.` : "Waiting for its turn.";
}

/** "after 2 steps", with a space before it; nothing where there are no steps. */
function moment(shown) {
  if (shown.report) return "";
  return state.step === 0 ? " before the first step" : ` after ${plural(state.step, "step")}`;
}

function unusual(shown) {
  const score = shown?.report?.none?.[shown.queryIds.indexOf(state.chosen)];
  return score === undefined ? "" : `More unusual than ${percent(score)} of the examples; above ${percent(shown.report.none_limit)} it is none of these.`;
}

/** {big, words, kind} about the chosen question, or null if it has no answer yet. */
function answerInWords(shown) {
  const question = shown?.queryIds.indexOf(state.chosen);
  const row = rowsAt(shown, state.step)[question];
  if (row === undefined) return null;
  if (isNone(shown, question)) return { big: "None of these", words: "It does not look like the examples of any class.", kind: "in-words" };
  const name = (place) => classById(shown.classIds[place])?.name ?? shown.names[place];
  const [first, second] = row.map((share, place) => ({ share, place })).sort((a, b) => b.share - a.share);
  if (first.share > 0.5 && first.share >= 2 * second.share) {
    return { big: name(first.place), words: `${percent(first.share)}${moment(shown)}`, kind: "in-words" };
  }
  const likeliest = [first, second].map(({ share, place }) => `${name(place)} ${percent(share)}`).join(", ");
  return { big: "Not sure", words: `${likeliest}${moment(shown)}`, kind: "unsure" };
}

function sentence(shown, now) {
  const given = [...answers(shown, state.step).values()];
  const counts = given.map((id) => given.filter((other) => other === id).length);
  const share = Math.max(...counts) / given.length;
  const classes = shown.classIds.length;
  const stuck = given.length >= 4 && share > Math.max(0.6, 1.7 / classes) ? `; ${percent(share)} of all answers are one class` : "";
  return `${now.right} of ${now.of} right${moment(shown)}${stuck}`;
}

