// The page comes to life: models first, then examples from the link, the tab, or a first episode.

import { startAsking } from "./adaptation.js";
import { getModels } from "./api.js";
import { mountAsk } from "./ask/ask.js";
import { mountEpisode, tryEpisode } from "./episode.js";
import { startEmpty, undo } from "./examples.js";
import { keepExamples, restoreExamples } from "./keeping.js";
import { mountGood } from "./good/good.js";
import { setText } from "./parts/dom.js";
import { written } from "./parts/format.js";
import { mountTheme } from "./parts/theme.js";
import { mountRuns } from "./runs/runs.js";
import { readFile, readLink, unpack } from "./share.js";
import { emit, on, reports, state, takesSteps } from "./store.js";
import { mountTake } from "./take/take.js";
import { mountTeach } from "./teach/teach.js";
import { mountWhy } from "./why/why.js";

const $ = (id) => document.getElementById(id);

async function loadModels() {
  const { models, limits, version } = await getModels();
  const named = models.map((model) => ({ ...model, label: written(model.label) }));
  Object.assign(state, { models: named, version, limits: { ...state.limits, ...limits } });
  setText($("version"), version ? `firststep ${version}.` : "");
  emit("models");
}

/** From the address bar, the tab's storage, or drawn; never nothing. */
async function firstExamples() {
  let line = "";
  try {
    const link = await readLink();
    if (link?.episode) return await tryEpisode(link.episode);
    if (link?.examples) return unpack(link.examples);
  } catch (broken) {
    line = broken.message;
  }
  try {
    if (!restoreExamples()) await tryEpisode();
  } catch {
    startEmpty(); // models without a dataset: drawing and dropping still work
  }
  if (line) setText($("origin"), line);
}

/** The title, and links to the sections that there are. */
function showKind() {
  const title = takesSteps() ? "Teach it a few pictures. Watch every gradient step." : "Teach it a few photographs. See how well it tells them apart.";
  setText($("title"), title);
  document.title = `firststep: ${title.charAt(0).toLowerCase()}${title.slice(1, -1)}`;
  document.querySelector(".jumps [href='#good']").hidden = !reports();
  document.querySelector(".jumps [href='#why']").hidden = !takesSteps();
}

function mountViews() {
  // Id of a view's <main> → function that is told whether the view is shown. Its button has the id "view-" + id.
  const views = { try: () => {}, runs: mountRuns($("runs")) };
  const show = (name) => {
    for (const [view, tell] of Object.entries(views)) {
      $(view).hidden = view !== name;
      $(`view-${view}`).setAttribute("aria-pressed", String(view === name));
      tell(view === name);
    }
  };
  for (const view of Object.keys(views)) $(`view-${view}`).addEventListener("click", () => show(view));
}

function mountBanner() {
  on("server", async () => {
    $("server").hidden = state.serverIsUp;
    setText($("server"), state.serverIsUp ? "" : "The server does not answer. Start “firststep page” again: this page goes on by itself, your examples are still here.");
    if (!state.serverIsUp) return;
    const isFirst = state.models.length === 0;
    await loadModels();
    if (isFirst) await firstExamples();
  });
}

function mountWindow(pasteToTeach, pasteToAsk) {
  const isTyping = (target) => target.closest?.("input, textarea, select") !== null;
  document.addEventListener("paste", (event) => {
    if (isTyping(event.target) && (event.clipboardData?.files.length ?? 0) === 0) return;
    if (pasteToTeach(event) || pasteToAsk(event)) event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "z" || !(event.ctrlKey || event.metaKey) || isTyping(event.target)) return;
    event.preventDefault();
    undo();
  });
  // A file dropped beside every target would replace the page; a file of examples is opened wherever it lands.
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", async (event) => {
    event.preventDefault();
    const [file] = event.dataTransfer.files;
    if (!file?.name.endsWith(".json")) return;
    try {
      await readFile(file);
    } catch (refusal) {
      setText($("origin"), refusal.message);
    }
  });
  addEventListener("hashchange", () => /^#[es]=/.test(location.hash) && firstExamples());
}

// The token of a guarded server is a cookie by now: links that are copied must not carry it.
if (location.search) history.replaceState(null, "", location.pathname + location.hash);
mountTheme($("theme"));
on("models", showKind);
mountBanner();
mountViews();
mountEpisode($("episode"), $("origin"));
mountWindow(mountTeach($("teach")), mountAsk($("ask")));
mountGood($("good"));
mountWhy($("why"));
mountTake($("take"));
startAsking();
keepExamples();
try {
  await loadModels();
  await firstExamples();
} catch (refusal) {
  setText($("origin"), refusal.message);
}
