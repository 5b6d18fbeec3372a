// One question, a model without steps: the classes, likeliest first.

import { isNone } from "../adaptation.js";
import { h } from "../parts/dom.js";
import { percent, plural } from "../parts/format.js";
import { classById } from "../store.js";
import { thumbnail } from "../teach/pictures.js";

const SHOWN = 8;

/** A list, or null if this question has no answer yet. */
export function reportBars({ shown }, style, width, question) {
  const place = shown.queryIds.indexOf(question.id);
  const row = shown.report?.probabilities[place];
  if (row === undefined) return null;
  const order = row.map((share, number) => ({ share, id: shown.classIds[number], name: shown.names[number] })).sort((a, b) => b.share - a.share);
  const rest = order.slice(SHOWN).reduce((sum, { share }) => sum + share, 0);
  return h(
    "ul",
    { class: `report-bars ${isNone(shown, place) ? "none" : style.colour}` },
    order.slice(0, SHOWN).map((one) => classRow(one, question)),
    order.length > SHOWN && h("li", { class: "note" }, `${plural(order.length - SHOWN, "other class", "other classes")}: ${percent(rest)}`),
  );
}

function classRow({ share, id, name }, question) {
  const one = classById(id);
  const first = one?.examples[0];
  const isTrue = question.label === id;
  const bar = h("span");
  bar.style.width = `${(100 * share).toFixed(2)}%`;
  return h(
    "li",
    {},
    first ? thumbnail(first.seen, "") : h("span"),
    h("span", { class: "class-name" }, one?.name ?? name, isTrue && h("span", { class: "truth", title: "the truth" }, " ✓")),
    h("span", { class: "share" }, percent(share)),
    h("span", { class: "track", "aria-hidden": "true" }, bar),
  );
}
