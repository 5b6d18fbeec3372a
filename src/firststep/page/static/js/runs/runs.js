// The view "Watch runs": the runs of a folder, live while they train.

import { getRun, getRuns } from "../api.js";
import { h, setText } from "../parts/dom.js";
import { duration, percent, plural, short, written } from "../parts/format.js";
import { key, styleAt } from "../parts/styles.js";
import { on, state } from "../store.js";
import { makeRunCharts } from "./run-charts.js";

const EVERY = 2000;

export function mountRuns(main) {
  let timer = null;
  let isOpen = false;
  let controller = new AbortController();
  let runs = [];
  let isFirst = true;
  const ticked = new Map(); // run id → number of its style
  const histories = new Map(); // run id → {updates of the list's entry, history}
  const rows = new Map();

  const note = h("p", { class: "note" });
  const problem = h("p", { class: "problem", role: "alert" });
  const list = h("ul", { class: "runs" });
  const charts = makeRunCharts();
  main.append(
    h("section", { class: "panel", "aria-labelledby": "runs-title" }, h("div", { class: "panel-head" }, h("h1", { id: "runs-title" }, "Watch runs")), note, list, problem),
    charts.element,
  );

  function freeStyle() {
    const taken = new Set(ticked.values());
    for (let place = 0; ; place++) if (!taken.has(place)) return place;
  }

  function tick(id, isTicked) {
    if (isTicked) ticked.set(id, freeStyle());
    else ticked.delete(id);
    show();
    refreshHistories();
  }

  function makeRow(run) {
    const box = h("input", { type: "checkbox" });
    box.addEventListener("change", () => tick(run.id, box.checked));
    const swatch = h("span", { class: "swatch" });
    const name = h("strong", {});
    const about = h("span", { class: "note" });
    const progress = h("progress", { max: 1, value: 0 });
    const status = h("span", { class: "status" });
    const result = h("span", { class: "result" });
    const element = h("li", {}, h("label", {}, box, swatch, h("span", { class: "run-name" }, name, about)), h("span", { class: "run-state" }, progress, status), result);
    return {
      element,
      update(now) {
        box.checked = ticked.has(now.id);
        swatch.replaceChildren(...(ticked.has(now.id) ? [key(styleAt(ticked.get(now.id)))] : []));
        setText(name, now.name);
        setText(about, summaryOf(now.summary));
        progress.hidden = !now.of;
        progress.value = now.of ? Math.min(1, now.updates / now.of) : 0;
        progress.setAttribute("aria-label", `Progress of ${now.name}`);
        setText(status, now.error ?? statusOf(now));
        element.classList.toggle("failed", Boolean(now.error));
        setText(result, latestOf(now));
      },
    };
  }

  function show() {
    const ids = new Set(runs.map((run) => run.id));
    for (const [id, row] of rows) {
      if (ids.has(id)) continue;
      row.element.remove();
      rows.delete(id);
      ticked.delete(id);
    }
    runs.forEach((run, place) => {
      if (!rows.has(run.id)) rows.set(run.id, makeRow(run));
      const { element } = rows.get(run.id);
      if (list.children[place] !== element) list.insertBefore(element, list.children[place] ?? null);
      rows.get(run.id).update(run);
    });
    charts.show(
      runs
        .filter((run) => ticked.has(run.id) && histories.has(run.id))
        .map((run) => ({ name: run.name, style: styleAt(ticked.get(run.id)), metric: run.metric, ...histories.get(run.id).history })),
    );
  }

  /** Those that are ticked and have new updates. */
  async function refreshHistories() {
    const { signal } = controller;
    const stale = runs.filter((run) => ticked.has(run.id) && histories.get(run.id)?.updates !== run.updates);
    await Promise.all(
      stale.map(async (run) => {
        try {
          histories.set(run.id, { updates: run.updates, history: await getRun(run.id, signal) });
        } catch (refusal) {
          if (!signal.aborted) setText(problem, `${run.name}: ${refusal.message}`);
        }
      }),
    );
    if (!signal.aborted && stale.length > 0) show();
  }

  async function refresh() {
    const { signal } = controller;
    try {
      const answer = await getRuns(signal);
      if (signal.aborted) return;
      runs = answer.runs;
      setText(problem, "");
      setText(note, describe(answer));
      if (isFirst && runs.length > 0) {
        runs.filter((run) => !run.error).slice(0, 3).forEach((run) => ticked.set(run.id, freeStyle()));
        isFirst = false;
      }
      show();
      await refreshHistories();
    } catch (refusal) {
      if (!signal.aborted) setText(problem, refusal.message);
    }
    if (isOpen && !signal.aborted) timer = setTimeout(refresh, EVERY);
  }

  /** Polls only while somebody can see it. */
  function follow() {
    clearTimeout(timer);
    controller.abort();
    controller = new AbortController();
    if (isOpen && !document.hidden && state.serverIsUp) refresh();
  }

  document.addEventListener("visibilitychange", follow);
  on("server", follow);
  return (opened) => {
    isOpen = opened;
    follow();
  };
}

function describe({ folder_name: folder, runs }) {
  if (runs.length > 0) return `The runs in the folder ${folder}, updated every two seconds. Tick those that you want to compare.`;
  return `There is no run in the folder ${folder} yet. Train one: firststep train glyphs --out ${folder}/mine`;
}

function summaryOf(summary) {
  if (!summary) return "";
  const { label, data, backbone, task, steps, seed } = summary;
  return [written(label), data, backbone, task, plural(steps, "step"), `seed ${seed}`].join(" · ");
}

function statusOf(run) {
  const left = run.state === "training" && run.seconds_left ? `, about ${duration(run.seconds_left)} left` : "";
  const updates = run.of ? `${run.updates.toLocaleString("en")} of ${run.of.toLocaleString("en")} updates` : "";
  return [run.state, updates].filter(Boolean).join(", ") + left;
}

function latestOf({ latest = [], metric }) {
  if (latest.length === 0) return "";
  const shown = latest.length > 1 ? [1, latest.length - 1] : [0];
  const text = metric.percent ? percent : short;
  const values = [...new Set(shown)].map((step) => `step ${step}: ${text(latest[step])}`).join(", ");
  return metric.title === "accuracy" ? values : `${metric.title}, ${values}`;
}
