// Everything drawn on the page as one picture that stands alone: colours and letters are written into it.

import { s } from "../parts/dom.js";
import { shortened } from "../parts/format.js";

const WRITTEN = ["fill", "stroke", "stroke-width", "stroke-opacity", "fill-opacity", "opacity", "font-size", "font-weight", "font-family", "stroke-linecap", "stroke-linejoin", "image-rendering"];
const GAP = 24;
const BETWEEN = 16; // at most what the page leaves between two drawings, so that its rows stay rows
const LETTER = { title: 9, note: 7.4 }; // pixels, of an average letter
const TITLE = 44;

/** A copy of a drawing whose look does not depend on the style sheet. */
function standing(svg) {
  const copy = svg.cloneNode(true);
  const originals = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, place) => {
    const computed = getComputedStyle(originals[place]);
    for (const name of WRITTEN) {
      const value = computed.getPropertyValue(name);
      if (value) element.setAttribute(name, value.replaceAll('"', "'"));
    }
    element.removeAttribute("class");
  });
  return copy;
}

/** [{title, note, svg}] of what is shown now. */
function drawings() {
  const panels = [...document.querySelectorAll("#ask .model")].map((panel) => ({
    title: panel.getAttribute("aria-label"),
    note: [".big", ".words"].map((part) => panel.querySelector(part).textContent).join(": "),
    svg: panel.querySelector("svg.bars"),
  }));
  const charts = ["accuracy", "condition", "spectrum"].map((id) => ({
    title: document.querySelector(`#${id} strong`).textContent,
    note: [...document.querySelectorAll(`#${id} .legend span`)].map((one) => one.textContent).join(", "),
    svg: document.querySelector(`#${id} svg.chart`),
  }));
  const walks = [...document.querySelectorAll("#walks .walks > div")].map((walk) => ({
    title: walk.querySelector("h3").textContent,
    note: "gradient descent in such a bowl",
    svg: walk.querySelector("svg.walk"),
  }));
  return [...panels, ...charts, ...walks].filter(({ svg }) => svg && svg.closest("[hidden]") === null);
}

/** {text, width, height} of one SVG document with everything in rows, as wide as the page shows it. */
export function pictureSvg() {
  const { color, backgroundColor, fontFamily } = getComputedStyle(document.body);
  const found = drawings();
  const size = ({ svg }) => ({ wide: Number(svg.getAttribute("width")), high: Number(svg.getAttribute("height")) });
  const room = Math.max(document.querySelector("#ask .models").clientWidth, ...found.map((one) => size(one).wide));
  const [width, family] = [room + 2 * GAP, fontFamily.replaceAll('"', "'")];
  const picture = s("svg", { xmlns: "http://www.w3.org/2000/svg" });
  const background = s("rect", { x: 0, y: 0, fill: backgroundColor });
  picture.append(background);
  let [left, top, height] = [GAP, GAP, GAP];
  for (const one of found) {
    const { wide, high } = size(one);
    if (left > GAP && left + wide > width - GAP) [left, top] = [GAP, height];
    const copy = standing(one.svg);
    copy.setAttribute("x", left);
    copy.setAttribute("y", top + TITLE);
    picture.append(
      s("text", { x: left, y: top + 14, fill: color, "font-size": 15, "font-weight": 600, "font-family": family }, shortened(one.title, wide / LETTER.title)),
      s("text", { x: left, y: top + 33, fill: color, "font-size": 13, "font-family": family }, shortened(one.note, wide / LETTER.note)),
      copy,
    );
    left += wide + BETWEEN;
    height = Math.max(height, top + TITLE + high + GAP);
  }
  for (const element of [picture, background]) {
    element.setAttribute("width", width);
    element.setAttribute("height", height);
  }
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return { text: new XMLSerializer().serializeToString(picture), width, height };
}

export async function picturePng() {
  const { text, width, height } = pictureSvg();
  const image = new Image();
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  image.src = address;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(address);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
