// The pictures as folders, the way `firststep adapt` reads them: support/CLASS/1.png, query/CLASS/1.png.

import { supportClasses } from "../adaptation.js";
import { classById, state } from "../store.js";
import { zip } from "./zip.js";

const bytesOf = (picture) => Uint8Array.from(atob(picture), (character) => character.charCodeAt(0));

/** Names of classes as names of folders; different classes keep different names. */
export function folderNames(classes) {
  const taken = new Set();
  return new Map(
    classes.map(({ id, name }) => {
      const plain = name.replace(/[\\/:*?"<>|\u0000-\u001f]/g, "_").replace(/^\.+|[. ]+$/g, "_") || "_";
      let folder = plain;
      for (let number = 2; taken.has(folder.toLowerCase()); number++) folder = `${plain} ${number}`;
      taken.add(folder.toLowerCase());
      return [id, folder];
    }),
  );
}

export const allLabelled = () => state.queries.length > 0 && state.queries.every((query) => folderOf(query) !== null);

function folderOf(query) {
  const one = classById(query.label);
  return one && one.examples.length > 0 ? folderNames(supportClasses()).get(one.id) : null;
}

export function picturesZip(model) {
  const folders = folderNames(supportClasses());
  const files = supportClasses().flatMap((one) =>
    one.examples.map(({ seen }, place) => ({
      path: `support/${folders.get(one.id)}/${place + 1}.png`,
      bytes: bytesOf(seen[model.sees]),
    })),
  );
  const labelled = allLabelled();
  state.queries.forEach((query, place) => {
    const name = `${String(place + 1).padStart(3, "0")}.png`;
    files.push({ path: labelled ? `query/${folderOf(query)}/${name}` : `query/${name}`, bytes: bytesOf(query.seen[model.sees]) });
  });
  return zip(files);
}
