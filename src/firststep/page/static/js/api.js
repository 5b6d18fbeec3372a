// The server's answers. A server that does not answer is one event for the whole page, not an error of one card.

import { state, emit } from "./store.js";

const RETRY = 1500;

/** What the server refused, in its own words. */
export class Refused extends Error {}
/** Nothing answered. */
export class Unreachable extends Error {}

let waiting = null;

function setUp(isUp) {
  if (state.serverIsUp === isUp) return;
  state.serverIsUp = isUp;
  emit("server");
  if (!isUp && waiting === null) waiting = setInterval(tryAgain, RETRY);
}

async function tryAgain() {
  try {
    const answer = await fetch("/api/models", { cache: "no-store" });
    if (!answer.ok) return;
  } catch {
    return;
  }
  clearInterval(waiting);
  waiting = null;
  setUp(true);
}

async function request(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    setUp(false);
    throw new Unreachable("The server does not answer.");
  }
  setUp(true);
  if (answer.ok) return answer;
  let words = `The server answered ${answer.status}.`;
  try {
    words = (await answer.json()).error ?? words;
  } catch {
    // not JSON: the status has to do
  }
  throw new Refused(words);
}

const json = (body, signal) => ({
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
  signal,
});

export const getModels = async () => (await request("/api/models", { cache: "no-store" })).json();
export const getRuns = async (signal) => (await request("/api/runs", { cache: "no-store", signal })).json();
export const getRun = async (id, signal) =>
  (await request(`/api/runs/${id.split("/").map(encodeURIComponent).join("/")}`, { cache: "no-store", signal })).json();
export const drawEpisode = async (wanted) => (await request("/api/episode", json(wanted))).json();
export const exportModel = async (wanted) => (await request("/api/export", json(wanted))).blob();

/** Files in parts that one request may hold; a larger file stands alone, and the server says so. */
function uploads(files) {
  const { files: most, upload_bytes: bytes } = state.limits;
  const parts = [];
  let size = Infinity;
  for (const file of files) {
    if (size + file.size > 0.9 * bytes || parts.at(-1).length >= most) [size] = [0, parts.push([])];
    parts.at(-1).push(file);
    size += file.size;
  }
  return parts;
}

/** Pictures as the networks see them: [{name, seen} or {name, error}], in order. */
export async function see(files) {
  const results = [];
  for (const part of uploads(files)) {
    const form = new FormData();
    for (const file of part) form.append("file", file, file.name || "picture.png");
    results.push(...(await (await request("/api/see", { method: "POST", body: form })).json()).results);
  }
  return results;
}

/** The messages of an adaptation, as they are computed. */
export async function* adapt(wanted, signal) {
  const answer = await request("/api/adapt", json(wanted, signal));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line.trim()) yield JSON.parse(line);
    }
  } catch (problem) {
    if (problem.name === "AbortError" || signal.aborted) throw problem;
    setUp(false);
    throw new Unreachable("The server went away in the middle.");
  } finally {
    reader.cancel().catch(() => {});
  }
}
