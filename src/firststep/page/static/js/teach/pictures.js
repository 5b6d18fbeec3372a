// A picture as the network sees it, and files on their way there.

import { Unreachable, see } from "../api.js";
import { h } from "../parts/dom.js";
import { plural } from "../parts/format.js";
import { takesPhotographs, workingModels } from "../store.js";

/** The key of the preprocessing whose thumbnails are shown: that of the first model that works. */
export function shownKey(seen) {
  const key = workingModels()[0]?.sees;
  return key in seen ? key : Object.keys(seen)[0];
}

export const address = (seen) => `data:image/png;base64,${seen[shownKey(seen)]}`;

export function thumbnail(seen, alt) {
  return h("img", { class: takesPhotographs() ? "seen smooth" : "seen", src: address(seen), alt, draggable: "false" });
}

/** How the pictures of this page are seen, in words. */
export function howSeen() {
  const kinds = new Map(workingModels().map((model) => [model.sees, model]));
  const words = [...kinds.values()].map(({ image_size: side, channels, ink }) => {
    const colours = channels === 1 ? "grey levels" : "colours";
    return `${side} × ${side} pixels, ${colours}${ink ? ", light ink on dark" : ""}`;
  });
  return words.length === 0 ? "" : `Thumbnails are what the networks see: ${words.join("; or ")}.`;
}

/** Files to what the networks see: [{seen, folder}], and one line about those that are not pictures. */
export async function seeFiles(found) {
  try {
    const results = await see(found.map(({ file }) => file));
    const good = results.map((result, place) => ({ ...result, folder: found[place].folder })).filter(({ seen }) => seen);
    const bad = results.filter(({ error }) => error);
    const more = bad.length > 1 ? ` (and ${plural(bad.length - 1, "other file")})` : "";
    return { good, problem: bad.length > 0 ? `${bad[0].error}${more}` : "" };
  } catch (refusal) {
    const problem = refusal instanceof Unreachable ? "Not added: the server does not answer." : refusal.message;
    return { good: [], problem };
  }
}
