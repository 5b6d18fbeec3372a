// The section "Teach": a card for each class.

import { addClass, addFolders, canUndo, startEmpty, undo } from "../examples.js";
import { button, h, setText } from "../parts/dom.js";
import { plural } from "../parts/format.js";
import { canDraw, on, state } from "../store.js";
import { makeCard } from "./card.js";
import { acceptDrops, fileButton, pastedFiles } from "./intake.js";
import { howSeen, seeFiles } from "./pictures.js";

export function mountTeach(section) {
  const cards = new Map();
  let lastUsed = null;
  const list = h("div", { class: "cards" });
  const problem = h("p", { class: "problem", role: "alert" });
  const how = h("p", { class: "note" });
  const seen = h("p", { class: "note" });
  const undoButton = button("Undo", undo, { class: "quiet", "aria-label": "Undo the last change" });
  const addButton = button("+ Add a class", () => {
    const id = addClass();
    if (id === null) return setText(problem, `There is room for ${state.limits.classes} classes.`);
    const name = cards.get(id).element.querySelector("input.name");
    name.focus();
    name.select();
  });
  const folderButton = fileButton("Folder of folders", takeFolders, { webkitdirectory: true }, "Add a folder that has a folder for each class");
  const more = h("div", { class: "more" }, addButton, folderButton, h("p", { class: "note" }, "or drop folders of pictures here: each becomes a class"));

  section.append(
    h(
      "div",
      { class: "panel-head" },
      h("h2", { id: "teach-title" }, h("span", { class: "number", "aria-hidden": "true" }), "Teach"),
      undoButton,
      button("Start empty", startEmpty, { class: "quiet" }),
    ),
    how,
    list,
    more,
    problem,
    seen,
  );
  acceptDrops(more, takeFolders);

  /** Every folder is a class; files without one go into a class of their own. */
  async function takeFolders(found) {
    const { good, problem: line } = await seeFiles(found);
    setText(problem, line);
    if (good.length === 0) return;
    const pictures = (folder) => good.filter((one) => one.folder === folder).map((one) => one.seen);
    const folders = [...new Set(good.map((one) => one.folder))];
    const left = addFolders(folders.map((folder) => ({ name: folder.slice(0, 60), pictures: pictures(folder) })));
    if (left.classes > 0) setText(problem, `There is room for ${state.limits.classes} classes: the others are left out.`);
    else if (left.pictures > 0) setText(problem, `${plural(left.pictures, "picture")} left out: ${state.limits.examples} examples are the most.`);
  }

  function update() {
    const ids = new Set(state.classes.map((one) => one.id));
    for (const [id, card] of cards) {
      if (ids.has(id)) continue;
      card.close();
      card.element.remove();
      cards.delete(id);
    }
    state.classes.forEach((one, place) => {
      if (cards.has(one.id)) cards.get(one.id).update();
      else cards.set(one.id, makeCard(one.id));
      const { element } = cards.get(one.id);
      if (list.children[place] !== element) list.insertBefore(element, list.children[place] ?? null);
    });
    undoButton.disabled = !canUndo();
    addButton.disabled = state.classes.length >= state.limits.classes;
    setText(how, `A few examples of each class: ${canDraw() ? "draw, " : ""}drop, paste or choose pictures. Click one to remove it.`);
    setText(seen, howSeen());
  }

  const used = (event) => (lastUsed = event.target.closest?.(".card")?.dataset.class ?? lastUsed);
  section.addEventListener("focusin", used);
  section.addEventListener("pointerdown", used);
  on("examples models labels", update);
  update();

  /** Pictures pasted while a card has the focus, or had it last. Returns whether they are for a card. */
  return function paste(event) {
    const found = pastedFiles(event);
    const inAsk = document.activeElement?.closest("#ask");
    if (found.length === 0 || inAsk || !cards.has(lastUsed)) return false;
    cards.get(lastUsed).take(found);
    return true;
  };
}
