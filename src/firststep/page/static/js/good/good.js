// The section "How good is it?": what `firststep adapt` reports about the examples, for models with fixed features.

import { removeExample } from "../examples.js";
import { button, h, oncePerFrame } from "../parts/dom.js";
import { percent, plural } from "../parts/format.js";
import { classById, on, queryById, reports, state, workingModels } from "../store.js";
import { thumbnail } from "../teach/pictures.js";

const FEW = 3; // examples of a class, from which the estimate is too low
const LINES = 5;

export function mountGood(section) {
  const body = h("div", { class: "reports" });
  section.append(
    h("div", { class: "panel-head" }, h("h2", { id: "good-title" }, h("span", { class: "number", "aria-hidden": "true" }), "How good is it?")),
    body,
  );
  const update = oncePerFrame(() => {
    section.hidden = !reports();
    const found = workingModels().filter((model) => !model.takes_steps);
    body.replaceChildren(...found.map((model) => oneReport(model, found.length > 1)));
  });
  on("results models labels", update);
  update();
}

function oneReport(model, isNamed) {
  const shown = state.results.get(model.name)?.shown;
  const title = isNamed && h("h3", {}, model.label);
  if (!shown?.report) return h("article", {}, title, h("p", { class: "note" }, "Nothing to say yet: teach at least two classes."));
  const { report } = shown;
  const lists = [
    list("Look at these again", report.check.map((one) => doubtful(shown, one))),
    list("The same picture twice", [...report.repeated.map((pair) => repeated(shown, pair)), ...report.asked_again.map((pair) => askedAgain(shown, pair))]),
    list("Confused", report.confused.map((one) => h("li", {}, `${one.images} of ${plural(one.of, "example")} of “${one.label}” taken for “${one.taken_for}”`))),
    list("Add next", report.add_next.map((line) => h("li", {}, line))),
  ];
  return h("article", { "aria-label": `Report of ${model.label}` }, title, promise(shown), h("div", { class: "report-lists" }, lists));
}

function promise({ report, classIds }) {
  const { accuracy } = report;
  if (accuracy === null) {
    return h("div", { class: "score" }, h("p", { class: "big unsure" }, "Not known"), h("p", { class: "words" }, "One picture per class: nothing can be estimated."));
  }
  const [low, high] = accuracy.interval;
  const few = classIds.some((id) => (classById(id)?.examples.length ?? FEW + 1) <= FEW);
  const held = `${accuracy.right} of ${accuracy.total} held-out examples right, 95 % interval ${percent(low)} to ${percent(high)}.`;
  return h(
    "div",
    {},
    h("div", { class: "score" }, h("p", { class: "big" }, percent(accuracy.expected)), h("p", { class: "words" }, "expected accuracy on new pictures like these")),
    h("p", { class: "note" }, held, few && " With so few examples per class this is rather too low.", !report.calibrated && " Too few examples to calibrate the probabilities."),
  );
}

const list = (title, items) =>
  items.length > 0 &&
  h("div", {}, h("h3", {}, title), h("ul", { class: "report-list" }, items.slice(0, LINES), items.length > LINES && h("li", { class: "note" }, `and ${items.length - LINES} more`)));

/** The class that holds an example now, and the example; null if it was removed meanwhile. */
function exampleAt(shown, place) {
  const id = shown.exampleIds[place];
  for (const one of state.classes) {
    const example = one.examples.find((each) => each.id === id);
    if (example) return { one, example };
  }
  return null;
}

function withPicture(found, text) {
  if (found === null) return null;
  const { one, example } = found;
  const remove = button("Remove", () => removeExample(one.id, example.id), { class: "quiet", "aria-label": `Remove this example of ${one.name}` });
  return h("li", { class: "with-picture" }, thumbnail(example.seen, ""), h("span", {}, text), remove);
}

const doubtful = (shown, { image, label, looks_like: other, probability }) =>
  withPicture(exampleAt(shown, image), `is called “${label}”, but the others say ${percent(probability)} “${other}”`);

function repeated(shown, [first, second]) {
  const [one, other] = [exampleAt(shown, first), exampleAt(shown, second)];
  return one && withPicture(other, `is in “${other?.one.name}”, and also in “${one.one.name}”`);
}

function askedAgain(shown, [first, second]) {
  const [found, query] = [exampleAt(shown, first), queryById(shown.queryIds[second])];
  if (found === null || query === undefined) return null;
  const text = `question ${state.queries.indexOf(query) + 1} is an example of “${found.one.name}”: its answer says nothing about new pictures`;
  return h("li", { class: "with-picture" }, thumbnail(query.seen, ""), h("span", {}, text));
}
