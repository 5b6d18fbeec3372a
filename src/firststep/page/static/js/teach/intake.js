// Files from wherever they come: dropped (whole folders too), pasted, chosen.

import { h } from "../parts/dom.js";

/** [{file, folder}] of a drop; folder is the name of the one that holds the file, or "". */
export async function droppedFiles(transfer) {
  // Entries are gone after the first await: take them all before.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (entries.length === 0) return [...transfer.files].map((file) => ({ file, folder: "" }));
  const found = [];
  for (const entry of entries) await walk(entry, "", found);
  return found;
}

async function walk(entry, folder, found) {
  if (entry.name.startsWith(".")) return; // .DS_Store and its like
  if (entry.isFile) {
    found.push({ file: await new Promise((resolve, reject) => entry.file(resolve, reject)), folder });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    // readEntries gives a part at a time, and an empty list at the end.
    const part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (part.length === 0) return;
    for (const inner of part.sort((a, b) => (a.name < b.name ? -1 : 1))) await walk(inner, entry.name, found);
  }
}

/** The same for a choice of files or of a folder. */
export function chosenFiles(input) {
  return [...input.files]
    .filter((file) => !file.name.startsWith("."))
    .map((file) => ({ file, folder: file.webkitRelativePath.split("/").at(-2) ?? "" }));
}

/** Lets files be dropped on an element; take([{file, folder}]). */
export function acceptDrops(element, take) {
  let depth = 0; // of the elements within that the pointer is over
  const isOver = (value) => element.classList.toggle("over", value);
  element.addEventListener("dragenter", (event) => {
    event.preventDefault();
    isOver(++depth > 0);
  });
  element.addEventListener("dragover", (event) => event.preventDefault());
  element.addEventListener("dragleave", () => isOver(--depth > 0));
  element.addEventListener("drop", async (event) => {
    event.preventDefault();
    event.stopPropagation();
    depth = 0;
    isOver(false);
    const found = await droppedFiles(event.dataTransfer);
    if (found.length > 0) take(found);
  });
}

/** A button that chooses files; the input itself is hidden but stays in the tab order as the button. */
export function fileButton(text, take, attributes = {}, label = text) {
  const input = h("input", { type: "file", multiple: true, hidden: true, ...attributes });
  input.addEventListener("change", () => {
    const found = chosenFiles(input);
    input.value = "";
    if (found.length > 0) take(found);
  });
  const button = h("button", { type: "button", class: "quiet", "aria-label": label, onclick: () => input.click() }, text);
  return [button, input];
}

export function pastedFiles(event) {
  return [...(event.clipboardData?.files ?? [])].map((file) => ({ file, folder: "" }));
}
