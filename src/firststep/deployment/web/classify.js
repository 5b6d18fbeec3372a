// The page that `firststep adapt --export model.html` writes: pictures in, probabilities out, all in this file.

const $ = (id) => document.getElementById(id);
const card = JSON.parse($("card").textContent);

/** Bytes of an element that holds base64 of gzip. */
async function unpacked(id) {
  const text = $(id).textContent.trim();
  $(id).remove(); // tens of megabytes
  const packed = await fetch(`data:application/octet-stream;base64,${text}`);
  return new Response(packed.body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

async function load() {
  const script = URL.createObjectURL(new Blob([await unpacked("runtime")], { type: "text/javascript" }));
  const ort = await import(script);
  // Threads need headers that a file does not have.
  Object.assign(ort.env.wasm, { wasmBinary: await unpacked("wasm"), numThreads: 1 });
  const session = await ort.InferenceSession.create(await unpacked("model"), { executionProviders: ["wasm"] });
  return { ort, session };
}

const loading = load();
let last = Promise.resolve(); // one picture at a time

/** uint8 [size, size, channels] → {probabilities, none: unusualness from 0 to 1, or null} */
async function classified(pixels) {
  const { ort, session } = await loading;
  const { image_size: size, channels } = card.preprocessing;
  const images = new ort.Tensor("uint8", pixels, [1, size, size, channels]);
  const outputs = await session.run({ [session.inputNames[0]]: images });
  return { probabilities: [...outputs.probabilities.data], none: card.none_limit === null ? null : outputs.none.data[0] };
}

const classify = async (picture) => classified(await pixelsOf(picture, card.preprocessing));

function element(tag, name, ...children) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...children);
  return made;
}

const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;

const isNone = ({ none }) => none !== null && none > card.none_limit;

function verdict(found) {
  if (isNone(found)) return "none of these";
  const { probabilities } = found;
  const best = Math.max(...probabilities);
  return best > 0.5 ? card.classes[probabilities.indexOf(best)] : "not sure";
}

const SHOWN = 5;

function bars(found) {
  const { probabilities, none } = found;
  const order = probabilities.map((share, place) => ({ name: card.classes[place], share })).sort((a, b) => b.share - a.share);
  const rows = order.slice(0, SHOWN).map(({ name, share }) => {
    const bar = element("span", "bar");
    bar.style.width = `${100 * share}%`;
    return element("li", "", element("span", "class", name), element("span", "track", bar), element("span", "share", percent(share)));
  });
  if (order.length > SHOWN) rows.push(element("li", "rest", `${order.length - SHOWN} other classes: ${percent(order.slice(SHOWN).reduce((sum, { share }) => sum + share, 0))}`));
  if (none !== null) rows.push(element("li", "rest", `More unusual than ${percent(none)} of the examples; “none of these” is above ${percent(card.none_limit)}.`));
  return element("ul", isNone(found) ? "bars muted" : "bars", ...rows);
}

/** A card for one picture, filled when its turn has come. */
async function answer(file) {
  const image = element("img");
  image.src = URL.createObjectURL(file);
  image.alt = "";
  const title = element("h2", "", "one moment …");
  const body = element("div", "", title, element("p", "file", file.name || "pasted picture"));
  const shown = element("article", "", image, body);
  $("answers").prepend(shown);
  const before = last;
  let done;
  last = new Promise((resolve) => (done = resolve));
  await before;
  try {
    const found = await classify(file);
    title.textContent = verdict(found);
    body.append(bars(found));
  } catch (problem) {
    title.textContent = "not classified";
    image.remove();
    body.append(element("p", "problem", problem.name === "InvalidStateError" ? "The browser cannot read this file as a picture." : String(problem.message)));
  }
  shown.dataset.done = "";
  done();
}

const take = (files) => [...files].forEach(answer);

$("classes").textContent = card.classes.join(", ");
const { cross_validated_accuracy: accuracy, accuracy_interval: interval } = card;
$("promise").textContent =
  accuracy === null
    ? `Made from ${card.support_images} images. Its accuracy is not known: no image could be held out.`
    : `Made from ${card.support_images} images. Expected accuracy on pictures like them: ${percent(accuracy)}${interval ? ` (95 % interval ${percent(interval[0])} to ${percent(interval[1])})` : ""}.`;
$("choose").addEventListener("click", () => $("files").click());
$("files").addEventListener("change", () => (take($("files").files), ($("files").value = "")));
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => (event.preventDefault(), take(event.dataTransfer.files)));
addEventListener("paste", (event) => take(event.clipboardData.files));
loading.then(
  () => ($("state").textContent = ""),
  (problem) => ($("state").textContent = `The classifier cannot run in this browser: ${problem.message}`),
);
// For scripts on a page of your own
window.firststep = { card, classify, pixels: (picture) => pixelsOf(picture, card.preprocessing) };
