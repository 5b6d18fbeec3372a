// Every change of the examples sends them to all models again, and cancels running requests.
//
// A result: {status: "idle" | "waiting" | "running" | "done" | "error", message, ahead, shown}
// and shown: {classIds, queryIds, steps: [messages by step], auto, seconds}, the newest that has a step.

import { adapt, Unreachable } from "./api.js";
import { emit, on, proposeStep, state, workingModels } from "./store.js";

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
    queryIds: queries.map((query) => query.id),
    steps: [],
    auto: null,
    seconds: null,
  };
  update(model, { status: "running", message: "" });
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
        // A photo model on its own is there to classify; the first step is for comparing models.
        if (model.photographs && workingModels().length === 1) proposeStep(message.steps);
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

/** Class ids of all answers of a model after a number of steps, by query id. */
export function answers(shown, step) {
  const rows = shown?.steps[step]?.probabilities ?? [];
  return new Map(rows.map((row, number) => [shown.queryIds[number], shown.classIds[row.indexOf(Math.max(...row))]]));
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
