// The examples as a link or a small file, and back.

import { replaceAll } from "./examples.js";
import { state, workingModels } from "./store.js";

const MARK = "#s=";
const EPISODE = "#e=";
const KIND = "firststep examples";

/** What a file or a link holds; labels are places in the list of classes. */
export function packed() {
  const place = new Map(state.classes.map((one, number) => [one.id, number]));
  return {
    kind: KIND,
    version: 1,
    classes: state.classes.map(({ name, isUnnamed, examples }) => ({ name, isUnnamed, examples: examples.map(({ seen }) => seen) })),
    queries: state.queries.map(({ seen, label }) => ({ seen, label: place.get(label) ?? null })),
  };
}

const isSeen = (seen) =>
  typeof seen === "object" && seen !== null && Object.values(seen).length > 0 &&
  Object.values(seen).every((picture) => typeof picture === "string" && /^[A-Za-z0-9+/=]+$/.test(picture));

/** Takes what `packed` made; throws an Error with one line where it is something else. */
export function unpack(data, origin = { kind: "shared" }) {
  const { classes, queries } = data ?? {};
  const isOurs =
    data?.kind === KIND && Array.isArray(classes) && Array.isArray(queries) &&
    classes.every((one) => typeof one?.name === "string" && Array.isArray(one.examples) && one.examples.every(isSeen)) &&
    queries.every((one) => isSeen(one?.seen) && (one.label === null || classes[one.label] !== undefined));
  if (!isOurs) throw new Error("This is not a file of examples that this page has saved.");
  const { limits } = state;
  const count = classes.reduce((sum, one) => sum + one.examples.length, 0);
  if (classes.length > limits.classes || count > limits.examples || queries.length > limits.queries) {
    throw new Error(`This is more than there is room for: ${limits.classes} classes, ${limits.examples} examples, ${limits.queries} questions.`);
  }
  const keys = new Set(workingModels().map((model) => model.sees));
  const pictures = [...classes.flatMap((one) => one.examples), ...queries.map((one) => one.seen)];
  if (pictures.some((seen) => ![...keys].some((key) => key in seen))) {
    throw new Error("These pictures were seen by other models than those of this page.");
  }
  replaceAll(classes, queries, origin);
}

async function through(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

function toText(bytes) {
  let characters = "";
  for (const byte of bytes) characters += String.fromCharCode(byte);
  return btoa(characters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromText(text) {
  const characters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(characters, (character) => character.charCodeAt(0));
}

/** An episode that nobody has changed is its seed; anything else its pictures, compressed. */
export async function makeLink() {
  const start = `${location.origin}/`;
  if (state.origin.kind === "episode") {
    const { model, ways, shots, queries, seed } = state.origin;
    return `${start}${EPISODE}${encodeURIComponent(JSON.stringify({ model, ways, shots, queries, seed }))}`;
  }
  const bytes = new TextEncoder().encode(JSON.stringify(packed()));
  return `${start}${MARK}${toText(await through(bytes, new CompressionStream("deflate-raw")))}`;
}

/** What the address bar asks for: {episode} or {examples} or null; throws if it is broken. */
export async function readLink(hash = location.hash) {
  try {
    if (hash.startsWith(EPISODE)) return { episode: JSON.parse(decodeURIComponent(hash.slice(EPISODE.length))) };
    if (!hash.startsWith(MARK)) return null;
    const bytes = await through(fromText(hash.slice(MARK.length)), new DecompressionStream("deflate-raw"));
    return { examples: JSON.parse(new TextDecoder().decode(bytes)) };
  } catch {
    throw new Error("This link is broken: perhaps a part of it was cut off.");
  }
}

export function exampleFile() {
  return new Blob([JSON.stringify(packed())], { type: "application/json" });
}

export async function readFile(file) {
  let data;
  try {
    data = JSON.parse(await file.text());
  } catch {
    throw new Error(`${file.name} is not a file of examples.`);
  }
  unpack(data);
}
