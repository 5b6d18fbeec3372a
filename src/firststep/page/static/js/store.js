// What the page knows, and who wants to hear about it.
//
// Topics: models, examples (classes or queries), labels, results (of adaptations), choice (step or question), server.

export const state = {
  models: [],
  limits: { classes: 20, examples: 100, queries: 100, files: 64, upload_bytes: 2 ** 26, steps: 10 },
  version: "",
  /** [{id, name, isUnnamed: whether the page gave the name, examples: [{id, seen: {key: base64 PNG}}]}] */
  classes: [],
  /** [{id, seen, label: id of a class or null}] */
  queries: [],
  /** Where the examples are from: {kind: "episode", seed, ...}, {kind: "own"}, {kind: "shared"} */
  origin: { kind: "own" },
  /** Model name → its adaptation, see adaptation.js */
  results: new Map(),
  /** Number of inner steps that bars and spectra are shown for. */
  step: 1,
  /** Id of the question whose bars are shown. */
  chosen: null,
  serverIsUp: true,
};

const listeners = new Map();

export function on(topics, listener) {
  for (const topic of topics.split(" ")) {
    listeners.set(topic, [...(listeners.get(topic) ?? []), listener]);
  }
}

export function emit(topic) {
  for (const listener of listeners.get(topic) ?? []) listener();
}

export function choose({ step = state.step, question = state.chosen }) {
  if (step === state.step && question === state.chosen) return;
  Object.assign(state, { step, chosen: question });
  emit("choice");
}

export const workingModels = () => state.models.filter((model) => !model.error);
export const canDraw = () => workingModels().some((model) => model.ink);
/** Whether a model shows its inner steps; one with fixed features gives a report instead. */
export const takesSteps = () => workingModels().length === 0 || workingModels().some((model) => model.takes_steps);
export const reports = () => workingModels().some((model) => !model.takes_steps);
export const takesPhotographs = () => workingModels().some((model) => model.photographs);
export const classById = (id) => state.classes.find((one) => one.id === id);
export const queryById = (id) => state.queries.find((one) => one.id === id);
