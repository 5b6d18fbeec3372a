// Every change of classes and questions goes through here: checked, undoable, announced.

import { state, emit } from "./store.js";

const HISTORY = 100;
const history = [];
let numbers = 0;
const newId = () => `e${++numbers}`;

function commit(next, topic = "examples") {
  history.push({ classes: state.classes, queries: state.queries, origin: state.origin, chosen: state.chosen });
  if (history.length > HISTORY) history.shift();
  Object.assign(state, next);
  settle(topic);
}

function settle(topic) {
  const classIds = new Set(state.classes.map((one) => one.id));
  if (state.queries.some((query) => query.label !== null && !classIds.has(query.label))) {
    state.queries = state.queries.map((query) => (classIds.has(query.label) ? query : { ...query, label: null }));
  }
  if (!state.queries.some((query) => query.id === state.chosen)) state.chosen = state.queries[0]?.id ?? null;
  emit(topic);
}

export const canUndo = () => history.length > 0;

export function undo() {
  if (!canUndo()) return;
  Object.assign(state, history.pop());
  settle("examples");
}

const own = { kind: "own" };
const withClass = (id, change) => state.classes.map((one) => (one.id === id ? { ...one, ...change(one) } : one));

function freeName(classes = state.classes) {
  const taken = new Set(classes.map((one) => one.name));
  for (let number = 0; ; number++) {
    const letter = String.fromCharCode(65 + (number % 26));
    const name = number < 26 ? letter : `${letter}${Math.floor(number / 26) + 1}`;
    if (!taken.has(name)) return name;
  }
}

/** Returns the id of the new class, or null if there is no room. */
export function addClass() {
  if (state.classes.length >= state.limits.classes) return null;
  const id = newId();
  commit({ classes: [...state.classes, { id, name: freeName(), isUnnamed: true, examples: [] }], origin: own });
  return id;
}

/**
 * Every folder, {name or "", pictures}, becomes a class, or adds to the one of its name; one change to undo.
 * Cards that nobody has named or filled give way. Returns how many {classes, pictures} had no room.
 */
export function addFolders(folders) {
  const { limits } = state;
  const classes = state.classes.filter((one) => !one.isUnnamed || one.examples.length > 0);
  let room = limits.examples - classes.reduce((sum, one) => sum + one.examples.length, 0);
  const left = { classes: 0, pictures: 0 };
  for (const { name, pictures } of folders) {
    const kept = pictures.slice(0, Math.max(0, room)).map((seen) => ({ id: newId(), seen }));
    const place = name === "" ? -1 : classes.findIndex((one) => one.name === name);
    if (place < 0 && classes.length >= limits.classes) {
      left.classes++;
      continue;
    }
    if (place < 0) classes.push({ id: newId(), name: name || freeName(classes), examples: kept });
    else classes[place] = { ...classes[place], examples: [...classes[place].examples, ...kept] };
    room -= kept.length;
    left.pictures += pictures.length - kept.length;
  }
  commit({ classes, origin: own });
  return left;
}

export function removeClass(id) {
  commit({ classes: state.classes.filter((one) => one.id !== id), origin: own });
}

/** Returns what is wrong with the name, or null. */
export function renameClass(id, name) {
  const words = name.trim();
  if (words === "") return "A class needs a name.";
  if (words.length > 60) return "A name has at most 60 letters.";
  if (state.classes.some((one) => one.id !== id && one.name === words)) return `There is a class “${words}” already.`;
  if (state.classes.some((one) => one.id === id && one.name === words)) return null;
  commit({ classes: withClass(id, () => ({ name: words, isUnnamed: false })) });
  return null;
}

/** Returns how many had no room. */
export function addExamples(id, pictures) {
  const room = state.limits.examples - state.classes.reduce((sum, one) => sum + one.examples.length, 0);
  const kept = pictures.slice(0, Math.max(0, room)).map((seen) => ({ id: newId(), seen }));
  if (kept.length > 0) {
    commit({ classes: withClass(id, (one) => ({ examples: [...one.examples, ...kept] })), origin: own });
  }
  return pictures.length - kept.length;
}

export function removeExample(id, exampleId) {
  const keep = (one) => ({ examples: one.examples.filter((example) => example.id !== exampleId) });
  commit({ classes: withClass(id, keep), origin: own });
}

/** pictures: [{seen, label}]. Returns how many had no room; the last one that had is shown. */
export function addQueries(pictures) {
  const room = Math.max(0, state.limits.queries - state.queries.length);
  const kept = pictures.slice(0, room).map(({ seen, label = null }) => ({ id: newId(), seen, label }));
  if (kept.length > 0) commit({ queries: [...state.queries, ...kept], chosen: kept.at(-1).id, origin: own });
  return pictures.length - kept.length;
}

/** A drawing that continues: the same question, another picture. Not undone on its own; strokes are. */
export function replaceQuery(id, seen) {
  state.queries = state.queries.map((query) => (query.id === id ? { ...query, seen } : query));
  state.chosen = id;
  settle("examples");
}

export function removeQuery(id) {
  const place = state.queries.findIndex((query) => query.id === id);
  const queries = state.queries.filter((query) => query.id !== id);
  commit({ queries, chosen: queries[Math.min(place, queries.length - 1)]?.id ?? null, origin: own });
}

export function labelQuery(id, label) {
  commit({ queries: state.queries.map((query) => (query.id === id ? { ...query, label } : query)) }, "labels");
}

/** classes: [{name, examples: [seen]}], queries: [{seen, label: place of its class or null}] */
export function replaceAll(classes, queries, origin) {
  const made = classes.map(({ name, isUnnamed = false, examples }) => ({
    id: newId(),
    name,
    isUnnamed,
    examples: examples.map((seen) => ({ id: newId(), seen })),
  }));
  const asked = queries.map(({ seen, label }) => ({ id: newId(), seen, label: label === null ? null : made[label].id }));
  commit({ classes: made, queries: asked, chosen: asked[0]?.id ?? null, origin });
}

export function startEmpty() {
  replaceAll(["A", "B", "C"].map((name) => ({ name, isUnnamed: true, examples: [] })), [], own);
}
