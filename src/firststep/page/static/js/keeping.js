// A reload of the tab loses nothing: the examples stay in the tab's own storage, and nowhere else.

import { packed, unpack } from "./share.js";
import { on, state } from "./store.js";

const KEPT = "firststep-examples";

export function keepExamples() {
  let timer = null;
  on("examples labels", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      try {
        sessionStorage.setItem(KEPT, JSON.stringify({ data: packed(), origin: state.origin }));
      } catch {
        sessionStorage.removeItem(KEPT); // too large: better none than an old one
      }
    }, 300);
  });
}

/** Whether there was something to restore. */
export function restoreExamples() {
  try {
    const { data, origin } = JSON.parse(sessionStorage.getItem(KEPT));
    if (data.classes.length === 0) return false;
    unpack(data, origin);
    return true;
  } catch {
    return false; // nothing kept, or pictures for other models
  }
}
