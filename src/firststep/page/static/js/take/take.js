// The section "Take it along": models, tables, pictures, links, and the same as a command and in Python.

import { obstacle, supportFor } from "../adaptation.js";
import { exportModel } from "../api.js";
import { button, copy, download, h, newId, say, setText } from "../parts/dom.js";
import { exampleFile, makeLink, readFile } from "../share.js";
import { on, state, takesSteps, workingModels } from "../store.js";
import { predictionsCsv } from "./csv.js";
import { picturePng, pictureSvg } from "./picture.js";
import { picturesZip } from "./pictures-zip.js";
import { commandLine, pythonLines } from "./recipe.js";

const WHAT = { safetensors: "weights for firststep predict", onnx: "for ONNX Runtime", pt2: "for PyTorch without firststep", html: "a web page that works offline" };
const LONG_LINK = 8000;

function field(label, control) {
  control.id = newId("take");
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control);
}

function copyable(label) {
  const code = h("code", {});
  const copied = button("Copy", async () => {
    const isCopied = await copy(code.textContent);
    if (!isCopied) getSelection().selectAllChildren(code);
    setText(copied, isCopied ? "Copied" : "Selected");
    setTimeout(() => setText(copied, "Copy"), 1500);
  }, { class: "quiet copy", "aria-label": `Copy: ${label}` });
  const element = h("div", { class: "code" }, h("p", {}, label), h("pre", { tabindex: 0, "aria-label": label }, code), copied);
  return { element, set: (text) => setText(code, text) };
}

export function mountTake(section) {
  const model = h("select");
  const steps = h("select", {}, h("option", { value: "shown" }, "as shown"), h("option", { value: "auto" }, "auto"));
  const stepsField = field("Steps", steps);
  const formats = h("div", { class: "row" });
  const problem = h("p", { class: "problem", role: "alert" });
  const command = copyable("In a terminal");
  const python = copyable("In Python");
  const link = h("input", { readonly: true, "aria-label": "Link to these examples", hidden: true });
  const linkNote = h("p", { class: "note" });
  const chosen = () => workingModels().find((one) => one.name === model.value) ?? workingModels()[0];
  const wantedSteps = () => (steps.value === "auto" ? "auto" : state.step);
  const tell = (line) => setText(problem, line);

  const guarded = (action) => async () => {
    tell("");
    try {
      const line = chosen() ? obstacle(chosen()) : "No model works.";
      if (line !== null) return tell(line);
      await action();
    } catch (refusal) {
      tell(refusal.message);
    }
  };

  async function saveModel(format, one) {
    one.disabled = true;
    try {
      const wanted = { model: chosen().name, classes: supportFor(chosen()), steps: wantedSteps(), format };
      download(await exportModel(wanted), `model.${format}`);
      say(`model.${format} saved`);
    } finally {
      one.disabled = false;
    }
  }

  async function share() {
    const address = await makeLink();
    link.hidden = false;
    link.value = address;
    link.select();
    const size = address.length > LONG_LINK ? ` It is ${Math.ceil(address.length / 1000)} kB long: some programs cut such links, the file is safer.` : "";
    const copied = (await copy(address)) ? "Copied. " : "";
    setText(linkNote, `${copied}It restores these examples wherever this page is served; nothing is stored anywhere.${size}`);
  }

  const openInput = h("input", { type: "file", accept: ".json,application/json", hidden: true, id: newId("open") });
  openInput.addEventListener("change", async () => {
    const [file] = openInput.files;
    openInput.value = "";
    tell("");
    try {
      await readFile(file);
    } catch (refusal) {
      tell(refusal.message);
    }
  });

  const save = (name, make) => guarded(async () => download(await make(), name));
  const drawn = [
    button("Picture, PNG", save("firststep.png", picturePng)),
    button("Picture, SVG", save("firststep.svg", () => new Blob([pictureSvg().text], { type: "image/svg+xml" }))),
  ];
  const linkButton = button("Copy a link", share);
  section.append(
    h("div", { class: "panel-head" }, h("h2", { id: "take-title" }, h("span", { class: "number", "aria-hidden": "true" }), "Take it along")),
    h(
      "div",
      { class: "take" },
      h("div", {}, h("h3", {}, "The classifier"), h("div", { class: "row" }, field("Model", model), stepsField), formats),
      h(
        "div",
        {},
        h("h3", {}, "What came out"),
        h(
          "div",
          { class: "row" },
          button("Predictions, CSV", save("predictions.csv", () => new Blob([predictionsCsv()], { type: "text/csv" }))),
          drawn,
        ),
      ),
      h(
        "div",
        {},
        h("h3", {}, "The examples"),
        h(
          "div",
          { class: "row" },
          linkButton,
          button("Save as a file", () => download(exampleFile(), "firststep-examples.json")),
          button("Open a file", () => openInput.click()),
          openInput,
          button("Pictures, zip", save("pictures.zip", () => picturesZip(chosen()))),
        ),
        link,
        linkNote,
      ),
    ),
    problem,
    h("h3", {}, "The same without this page"),
    h("p", { class: "note" }, "With “Pictures, zip” in the current folder. The command calibrates its probabilities where it can; the answers are those of this page."),
    h("div", { class: "codes" }, command.element, python.element),
  );

  function update() {
    const kept = model.value;
    model.replaceChildren(...workingModels().map((one) => h("option", { value: one.name }, one.label)));
    model.value = workingModels().some((one) => one.name === kept) ? kept : (workingModels().at(-1)?.name ?? "");
    // Only steps are drawn as pictures, and photographs are too large for a link.
    for (const one of [...drawn, linkButton]) one.hidden = !takesSteps();
    showChoice();
  }

  function showChoice() {
    const one = chosen();
    if (one === undefined) return;
    stepsField.hidden = !one.takes_steps;
    steps.options[0].textContent = `${state.step}, as shown`;
    const now = [...formats.children].map((child) => child.textContent).join();
    if (now !== one.exports.join()) {
      formats.replaceChildren(
        ...one.exports.map((format) => {
          const made = button(format, null, { title: WHAT[format] ?? "" });
          made.addEventListener("click", guarded(() => saveModel(format, made)));
          return made;
        }),
      );
    }
    command.set(commandLine(one, wantedSteps(), one.exports[0] ?? "safetensors"));
    python.set(pythonLines(one, wantedSteps()));
  }

  model.addEventListener("change", showChoice);
  steps.addEventListener("change", showChoice);
  on("models", update);
  on("choice examples", showChoice);
  update();
}
