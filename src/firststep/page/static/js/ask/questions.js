// The questions: a pad, and all pictures that are asked about.

import { NONE, answers } from "../adaptation.js";
import { addQueries, labelQuery, removeQuery, replaceQuery } from "../examples.js";
import { button, h, newId, setText } from "../parts/dom.js";
import { plural } from "../parts/format.js";
import { canDraw, choose, classById, on, queryById, state, takesPhotographs, takesSteps, workingModels } from "../store.js";
import { acceptDrops, fileButton } from "../teach/intake.js";
import { makePad } from "../teach/pad.js";
import { seeFiles, thumbnail } from "../teach/pictures.js";
import { makeWebcam } from "../teach/webcam.js";

/** {element, take(files)} */
export function makeQuestions() {
  let sheet = { query: null, strokes: 0 }; // what is on the pad: the id of its question, once it has one
  const problem = h("p", { class: "problem", role: "alert" });
  const pad = makePad({ hint: "draw to ask", changed: drawing, done: fresh });
  pad.setLabel("Drawing pad for a question");
  const next = button("New", fresh, { class: "quiet", "aria-label": "New drawing" });
  const undo = button("Undo", () => pad.undo(), { class: "quiet", "aria-label": "Undo stroke of the question" });
  const list = h("ul", { class: "questions" });
  const webcam = makeWebcam(() => "a question", take, (line) => setText(problem, line));
  const files = fileButton("Files", take, { accept: "image/*" }, "Ask about picture files");

  /** The question on the pad follows every stroke. */
  async function drawing() {
    undo.disabled = next.disabled = pad.isEmpty();
    const ours = sheet; // a new sheet may come while the server looks at this one
    const strokes = ++ours.strokes;
    if (pad.isEmpty()) {
      if (queryById(ours.query)) removeQuery(ours.query);
      ours.query = null;
      return;
    }
    const { good, problem: line } = await seeFiles([{ file: await pad.file(), folder: "" }]);
    if (strokes !== ours.strokes) return; // another stroke came meanwhile
    setText(problem, line);
    if (good.length === 0) return;
    if (queryById(ours.query)) replaceQuery(ours.query, good[0].seen);
    else if (addQueries([{ seen: good[0].seen }]) === 0) ours.query = state.queries.at(-1).id;
    else setText(problem, `There is room for ${state.limits.queries} questions.`);
  }

  function fresh() {
    sheet = { query: null, strokes: 0 };
    pad.clear();
    undo.disabled = next.disabled = true;
  }

  /** A picture in a folder that is called like a class has that label. */
  async function take(found) {
    const { good, problem: line } = await seeFiles(found);
    setText(problem, line);
    const labelled = good.map(({ seen, folder }) => ({
      seen,
      label: state.classes.find((one) => one.name === folder)?.id ?? null,
    }));
    const left = labelled.length > 0 ? addQueries(labelled) : 0;
    if (left > 0) setText(problem, `${plural(left, "picture")} left out: ${state.limits.queries} questions are the most.`);
  }

  function showPad() {
    pad.element.hidden = next.hidden = undo.hidden = !canDraw();
    element.classList.toggle("without-pad", !canDraw());
    element.classList.toggle("with-answers", !takesSteps());
    webcam.toggle.hidden = !takesPhotographs();
    undo.disabled = next.disabled = pad.isEmpty();
  }

  const label = h("select", { id: newId("label") });
  label.addEventListener("change", () => labelQuery(state.chosen, label.value || null));
  const remove = button("Remove", () => removeQuery(state.chosen), { class: "quiet", "aria-label": "Remove this question" });
  const detail = h("div", { class: "detail" }, h("label", { for: label.id }, "In truth it is"), label, remove);

  function showDetail() {
    const query = queryById(state.chosen);
    detail.hidden = query === undefined;
    if (query === undefined) return;
    label.replaceChildren(
      h("option", { value: "" }, "not said"),
      ...state.classes.map((one) => h("option", { value: one.id }, one.name)),
    );
    label.value = query.label ?? "";
  }

  function showList() {
    const items = [...list.children];
    const same = items.length === state.queries.length && state.queries.every((query, place) => items[place].query?.seen === query.seen && items[place].query.id === query.id);
    if (!same) list.replaceChildren(...state.queries.map(questionItem));
    showMarks();
  }

  function questionItem(query) {
    const pick = () => choose({ question: query.id });
    const item = h(
      "li",
      {},
      h("button", { type: "button", class: "question", onclick: pick }, thumbnail(query.seen, ""), h("span", { class: "marks", "aria-hidden": "true" })),
    );
    item.query = query;
    return item;
  }

  /** Under every picture: right or wrong per model at this step; without steps the answer itself. */
  function showMarks() {
    const given = workingModels().map((model) => answers(state.results.get(model.name)?.shown, state.step));
    [...list.children].forEach((item, place) => {
      const query = state.queries[place];
      const pressed = query.id === state.chosen;
      const [one] = item.children;
      one.setAttribute("aria-pressed", String(pressed));
      const truth = state.classes.find((each) => each.id === query.label);
      const rights = given.map((answer) => (truth && answer.has(query.id) ? answer.get(query.id) === query.label : null));
      const words = workingModels().map((model, number) => (rights[number] === null ? "" : `, ${model.label} ${rights[number] ? "right" : "wrong"}`));
      one.setAttribute("aria-label", `Question ${place + 1}${truth ? `, ${truth.name}` : ""}${words.join("")}`);
      const mark = (right, number) => (takesSteps() ? (right === null ? "·" : right ? "✓" : "✗") : nameOf(given[number].get(query.id)));
      one.lastChild.replaceChildren(...rights.map((right, number) => h("span", { class: right === null ? "open" : right ? "right" : "wrong" }, mark(right, number))));
    });
    showDetail();
  }

  const nameOf = (answer) => (answer === NONE ? "none" : (classById(answer)?.name ?? "…"));
  const empty = h("p", { class: "note" });
  const element = h(
    "div",
    { class: "asking" },
    h("div", { class: "ask-pad" }, pad.element, h("div", { class: "card-tools" }, next, undo, files, webcam.toggle), webcam.box),
    h("div", { class: "asked" }, empty, list, detail, problem),
  );
  acceptDrops(element, take);
  function showEmpty() {
    const how = canDraw() ? "Draw a question, or drop pictures here." : "Drop pictures to ask about here, or choose files.";
    const pick = takesSteps() ? "Pick a question. Marks: right or wrong, one for each model." : "Pick a question. Below each is its answer.";
    setText(empty, state.queries.length === 0 ? how : pick);
  }
  on("models", () => (showPad(), showEmpty()));
  on("examples labels", () => (showList(), showEmpty()));
  on("results choice", showMarks);
  showPad();
  showList();
  showEmpty();
  return { element, take };
}
