// Try an episode: classes that the models have never seen, drawn from the test split.

import { drawEpisode } from "./api.js";
import { replaceAll } from "./examples.js";
import { button, h, newId, setText } from "./parts/dom.js";
import { plural } from "./parts/format.js";
import { canDraw, on, state, workingModels } from "./store.js";

// A typical one: MAML has 20 % and the conditioned model 80 % after one step; over 600 episodes it is 22 and 79.
const FIRST = { ways: 5, shots: 5, queries: 3, seed: 3 };

const drawer = () => workingModels().find((model) => model.can_draw_episodes);
const smallest = () => Math.min(FIRST.ways, ...workingModels().map((model) => model.most_classes ?? Infinity));

/** Fills the page with an episode; wanted: {ways, shots, queries, seed} or a part of it. */
export async function tryEpisode(wanted = {}) {
  const model = workingModels().find((one) => one.name === wanted.model && one.can_draw_episodes) ?? drawer();
  if (model === undefined) throw new Error("None of these models can draw an episode: it has no dataset at hand.");
  const asked = { ...FIRST, ways: smallest(), ...wanted, model: model.name };
  const drawn = await drawEpisode(asked);
  const queries = drawn.queries.map(({ image, label }) => ({ seen: image, label }));
  replaceAll(drawn.classes, queries, { kind: "episode", ...asked, data: drawn.data });
}

function choice(label, values, chosen) {
  const id = newId("episode");
  const select = h("select", { id }, values.map((value) => h("option", { value }, String(value))));
  select.value = String(chosen);
  return { select, row: h("div", { class: "field" }, h("label", { for: id }, label), select) };
}

export function mountEpisode(box, origin) {
  const ways = choice("Classes", [2, 3, 4, 5], 5);
  const shots = choice("Examples of each", [1, 2, 5, 10], 5);
  const seed = h("input", { id: newId("seed"), type: "number", min: 0, max: 2 ** 31 - 1, value: FIRST.seed, inputmode: "numeric" });
  const problem = h("p", { class: "problem", role: "alert" });
  const go = button("Try another episode", async () => {
    seed.value = String(1 + Math.floor(Math.random() * 99_999));
    await draw();
  }, { class: "primary" });
  seed.addEventListener("change", draw);
  for (const { select } of [ways, shots]) select.addEventListener("change", draw);

  async function draw() {
    go.disabled = true;
    try {
      await tryEpisode({ ways: Number(ways.select.value), shots: Number(shots.select.value), seed: Math.max(0, Math.trunc(Number(seed.value)) || 0) });
      setText(problem, "");
    } catch (refusal) {
      setText(problem, refusal.message);
    }
    go.disabled = false;
  }

  box.append(go, ways.row, shots.row, h("div", { class: "field" }, h("label", { for: seed.id }, "Seed"), seed), problem);

  function show() {
    box.hidden = drawer() === undefined;
    if (state.origin.kind === "episode") seed.value = String(state.origin.seed);
    setText(origin, words());
  }
  on("examples models", show);
  show();
}

function words() {
  const { origin } = state;
  if (origin.kind === "episode") {
    const classes = plural(origin.ways, "class", "classes");
    return `A random test episode of ${origin.data}: ${classes} that were not in training, ${plural(origin.shots, "example")} of each. Change anything, or start empty and ${canDraw() ? "draw" : "drop"} your own.`;
  }
  if (origin.kind === "shared") return "The examples that were shared with you. Change anything, or add your own.";
  return "Your own examples. A few of each class are enough; every change is learned at once.";
}
