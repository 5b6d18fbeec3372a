// Every change of the examples sends them to all models again, and cancels running requests.
//
// A result: {status: "idle" | "waiting" | "running" | "done" | "error", message, ahead, progress, shown}
// and shown: {classIds, exampleIds, queryIds, steps: [messages by step], auto, report, seconds}, the newest that has an
// answer. A model with fixed features has a report and no steps.

import { adapt, Unreachable } from "./api.js";
import { emit, on, state, workingModels } from "./store.js";

const PAUSE = 180;
let timer = null;
let controller = new AbortController();

/** The classes that have examples, in the order of `firststep adapt`: by name. */
export function supportClasses() {
  const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
  return state.classes.filter((one) => one.examples.length > 0).sort(byName);
}

export function supportFor(model) {
  return supportClasses().map(({ name, examples }) => ({
    name,
    examples: examples.map((example) => example.seen[model.sees]),
  }));
}

/** Why a model cannot be asked, or null. */
export function obstacle(model) {
  const classes = supportClasses();
  if (model.error) return model.error;
  const least = Math.max(2, model.least_classes ?? 2);
  if (classes.length < least) return `Give at least ${least === 2 ? "two" : least} classes an example each.`;
  if (model.most_classes && classes.length > model.most_classes) {
    return `This model was trained with a row for each class and takes at most ${model.most_classes}.`;
  }
  const pictures = [...classes.flatMap((one) => one.examples), ...state.queries];
  if (pictures.some((picture) => !(model.sees in picture.seen))) {
    return "Some pictures came from a page with other models: this one has not seen them.";
  }
  return null;
}

function update(model, change) {
  state.results.set(model.name, { ...state.results.get(model.name), ...change });
  emit("results");
}

export function askAll() {
  clearTimeout(timer);
  controller.abort();
  controller = new AbortController();
  const { signal } = controller;
  timer = setTimeout(() => workingModels().forEach((model) => ask(model, signal)), PAUSE);
}

async function ask(model, signal) {
  const problem = obstacle(model);
  if (problem !== null) return update(model, { status: "idle", message: problem, shown: null });
  const classes = supportClasses();
  const queries = state.queries;
  const place = new Map(classes.map((one, number) => [one.id, number]));
  const wanted = {
    model: model.name,
    classes: supportFor(model),
    queries: queries.map(({ seen, label }) => ({ image: seen[model.sees], label: place.get(label) ?? null })),
    steps: state.limits.steps,
  };
  const shown = {
    classIds: classes.map((one) => one.id),
    names: classes.map((one) => one.name),
    exampleIds: classes.flatMap((one) => one.examples.map((example) => example.id)),
    queryIds: queries.map((query) => query.id),
    steps: [],
    auto: null,
    report: null,
    seconds: null,
  };
  update(model, { status: "running", message: "", progress: null });
  try {
    for await (const message of adapt(wanted, signal)) {
      if (signal.aborted) return;
      if (message.type === "waiting") update(model, { status: "waiting", ahead: message.ahead });
      else if (message.type === "start") update(model, { status: "running" });
      else if (message.type === "step") {
        shown.steps[message.step] = message;
        update(model, { status: "running", shown });
      } else if (message.type === "auto") {
        shown.auto = message;
        update(model, { shown });
      } else if (message.type === "progress") update(model, { progress: message });
      else if (message.type === "report") {
        shown.report = message;
        update(model, { progress: null, shown });
      } else if (message.type === "error") update(model, { status: "error", message: message.message, shown: null });
      else if (message.type === "done") {
        shown.seconds = message.seconds;
        update(model, { status: "done", shown });
      }
    }
  } catch (refusal) {
    if (signal.aborted) return;
    const message = refusal instanceof Unreachable ? "Waiting for the server …" : refusal.message;
    update(model, { status: "error", message });
  }
}

export const NONE = "none of these";

/** Rows of probabilities, one for each query, after a number of steps; a report has no steps. */
export const rowsAt = (shown, step) => (shown?.report ?? shown?.steps[step])?.probabilities ?? [];

/** Whether a query belongs to no class, in a model that can say so. */
export const isNone = (shown, place) => Boolean(shown.report?.none) && shown.report.none[place] > shown.report.none_limit;

/** Class ids of all answers of a model after a number of steps, or NONE, by query id. */
export function answers(shown, step) {
  const answer = (row, place) => (isNone(shown, place) ? NONE : shown.classIds[row.indexOf(Math.max(...row))]);
  return new Map(rowsAt(shown, step).map((row, place) => [shown.queryIds[place], answer(row, place)]));
}

/** {right, of} for the labelled questions, with the labels of this moment; null if there is none. */
export function score(shown, step) {
  const given = answers(shown, step);
  const labelled = state.queries.filter((query) => query.label !== null && given.has(query.id));
  if (labelled.length === 0) return null;
  return { right: labelled.filter((query) => given.get(query.id) === query.label).length, of: labelled.length };
}

export function startAsking() {
  on("examples models", askAll);
}
