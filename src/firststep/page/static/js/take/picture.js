// Everything drawn on the page as one picture that stands alone: colours and letters are written into it.

import { s } from "../parts/dom.js";

const WRITTEN = ["fill", "stroke", "stroke-width", "stroke-opacity", "fill-opacity", "opacity", "font-size", "font-weight", "font-family", "stroke-linecap", "stroke-linejoin", "image-rendering"];
const GAP = 24;
const TITLE = 26;

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

/** [{title, svg}] of what is shown now. */
function drawings() {
  const found = [];
  for (const panel of document.querySelectorAll("#ask .model")) {
    const svg = panel.querySelector("svg.bars");
    const score = panel.querySelector(".big").textContent;
    if (svg) found.push({ title: `${panel.getAttribute("aria-label")}: ${score} of the questions right, this one:`, svg });
  }
  for (const id of ["accuracy", "condition", "spectrum"]) {
    const svg = document.querySelector(`#${id} svg.chart`);
    if (svg) found.push({ title: document.querySelector(`#${id} strong`).textContent, svg });
  }
  for (const walk of document.querySelectorAll("#walks .walks > div")) {
    found.push({ title: `${walk.querySelector("h3").textContent}: gradient descent in such a bowl`, svg: walk.querySelector("svg.walk") });
  }
  return found;
}

/** {text, width, height} of one SVG document with everything in two columns. */
export function pictureSvg() {
  const { color, backgroundColor, fontFamily } = getComputedStyle(document.body);
  const found = drawings();
  const size = ({ svg }) => ({ width: Number(svg.getAttribute("width")), height: Number(svg.getAttribute("height")) });
  const column = Math.max(...found.map((one) => size(one).width), 300);
  const bottoms = [GAP, GAP];
  const picture = s("svg", { xmlns: "http://www.w3.org/2000/svg" });
  const background = s("rect", { x: 0, y: 0, fill: backgroundColor });
  picture.append(background);
  for (const one of found) {
    const side = bottoms[0] <= bottoms[1] ? 0 : 1;
    const left = GAP + side * (column + GAP);
    const top = bottoms[side];
    picture.append(s("text", { x: left, y: top + 14, fill: color, "font-size": 15, "font-weight": 600, "font-family": fontFamily.replaceAll('"', "'") }, one.title));
    const copy = standing(one.svg);
    copy.setAttribute("x", left);
    copy.setAttribute("y", top + TITLE);
    picture.append(copy);
    bottoms[side] = top + TITLE + size(one).height + GAP;
  }
  const [width, height] = [2 * column + 3 * GAP, Math.max(...bottoms)];
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
