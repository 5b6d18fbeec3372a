// The card of one class: its name, a pad, its examples.

import { addExamples, removeClass, removeExample, renameClass } from "../examples.js";
import { button, h, newId, say, setText } from "../parts/dom.js";
import { plural } from "../parts/format.js";
import { canDraw, classById, state, takesPhotographs } from "../store.js";
import { acceptDrops, fileButton } from "./intake.js";
import { makePad } from "./pad.js";
import { seeFiles, thumbnail } from "./pictures.js";
import { makeWebcam } from "./webcam.js";

/** {element, update(), take(files), close()} */
export function makeCard(id) {
  const name = () => classById(id)?.name ?? "";
  const errorId = newId("problem");
  const error = h("p", { class: "problem", id: errorId, role: "alert" });
  const tell = (line) => setText(error, line);

  const input = h("input", {
    class: "name",
    value: name(),
    "aria-label": "Name of the class",
    "aria-describedby": errorId,
    maxlength: 60,
    spellcheck: "false",
    autocomplete: "off",
  });
  input.addEventListener("change", () => {
    const problem = renameClass(id, input.value);
    tell(problem ?? "");
    input.setAttribute("aria-invalid", String(problem !== null));
    if (problem === null) input.value = name();
  });
  input.addEventListener("keydown", (event) => event.key === "Enter" && input.blur());

  async function take(found) {
    const { good, problem } = await seeFiles(found);
    const left = good.length > 0 ? addExamples(id, good.map(({ seen }) => seen)) : 0;
    tell(left > 0 ? `${plural(left, "picture")} left out: ${state.limits.examples} examples are the most.` : problem);
    if (good.length > left) say(`${plural(good.length - left, "example")} added to ${name()}.`);
    return problem === "";
  }

  async function addDrawing() {
    if (pad.isEmpty()) return tell("Draw something first.");
    const file = await pad.file();
    if (await take([{ file, folder: "" }])) pad.clear();
    showPadButtons();
  }

  const pad = makePad({ hint: "draw here", changed: showPadButtons, done: addDrawing });
  const add = button("Add", addDrawing, { class: "add" });
  const undo = button("Undo", () => pad.undo(), { class: "quiet", "aria-label": "Undo stroke" });
  function showPadButtons() {
    add.disabled = undo.disabled = pad.isEmpty();
  }
  showPadButtons();

  const webcam = makeWebcam(name, take, tell);
  const files = fileButton("Files", take, { accept: "image/*" }, "Add picture files");
  const remove = button("×", () => removeClass(id), { class: "quiet close" });
  const examples = h("ul", { class: "examples" });
  const count = h("p", { class: "count" });
  const element = h(
    "article",
    { class: "card", "data-class": id },
    pad.element,
    h("div", { class: "card-head" }, input, remove),
    examples,
    count,
    h("div", { class: "card-tools" }, add, undo, files, webcam.toggle),
    webcam.box,
    error,
  );
  acceptDrops(element, take);

  function update() {
    const one = classById(id);
    if (document.activeElement !== input) input.value = one.name;
    element.setAttribute("aria-label", `Class ${one.name}`);
    remove.setAttribute("aria-label", `Remove class ${one.name}`);
    pad.setLabel(`Drawing pad of ${one.name}`);
    pad.element.hidden = add.hidden = undo.hidden = !canDraw();
    element.classList.toggle("without-pad", !canDraw());
    webcam.toggle.hidden = !takesPhotographs();
    showExamples(one);
  }

  let shown = null;
  let shownName = null;
  function showExamples(one) {
    if (shown === one.examples && shownName === one.name) return;
    [shown, shownName] = [one.examples, one.name];
    const hadFocus = examples.contains(document.activeElement);
    examples.replaceChildren(
      ...one.examples.map((example, place) =>
        h(
          "li",
          {},
          h(
            "button",
            {
              type: "button",
              class: "thumb",
              title: "Remove this example",
              "aria-label": `Remove example ${place + 1} of ${one.name}`,
              onclick: () => removeExample(id, example.id),
            },
            thumbnail(example.seen, ""),
          ),
        ),
      ),
    );
    if (hadFocus) (examples.querySelector("button") ?? input).focus();
    setText(count, one.examples.length === 0 ? "No example yet: left out until it has one." : "");
  }

  update();
  return { element, update, take, close: webcam.close };
}
