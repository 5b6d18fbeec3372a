// A sheet to draw on: mouse, finger or pen, and the keyboard.

import { h } from "../parts/dom.js";
import { extend, paint, picture, smoothed } from "./strokes.js";

const SIDE = 256;
const KEY_STEP = 0.04;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const HELP = "Arrow keys move the pen, space puts it down or lifts it, Backspace takes a stroke back, Enter is done.";

/** changed() after every stroke, undo and clear; done() on Enter. */
export function makePad({ hint, changed, done }) {
  let strokes = [];
  let current = null;
  let pen = null; // of the keyboard: {x, y}, seen only while it is used
  const canvas = h("canvas", {
    class: "pad",
    width: SIDE,
    height: SIDE,
    tabindex: 0,
    role: "application",
    title: "Draw here",
  });
  const context = canvas.getContext("2d");

  function redraw() {
    context.clearRect(0, 0, SIDE, SIDE);
    paint(context, current ? [...strokes, current] : strokes, SIDE);
    if (strokes.length === 0 && current === null && pen === null) writeHint();
    if (pen !== null) markPen();
  }

  function writeHint() {
    context.fillStyle = "#667080";
    context.font = "30px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillText(hint, SIDE / 2, SIDE / 2 + 10);
  }

  function markPen() {
    context.strokeStyle = current ? "#b03a00" : "#0b5cad";
    context.lineWidth = 5;
    context.beginPath();
    context.arc(pen.x * SIDE, pen.y * SIDE, 13, 0, 2 * Math.PI);
    context.stroke();
  }

  function finish() {
    if (current === null) return;
    strokes = [...strokes, smoothed(current)];
    current = null;
    redraw();
    changed();
  }

  function undo() {
    if (current !== null) current = null;
    else if (strokes.length > 0) strokes = strokes.slice(0, -1);
    else return;
    redraw();
    changed();
  }

  function clear() {
    strokes = [];
    current = pen = null;
    redraw();
  }

  function pointAt(event) {
    const box = canvas.getBoundingClientRect();
    const inside = (value) => Math.min(1, Math.max(0, value));
    const pressure = event.pointerType === "pen" ? event.pressure : 0.5;
    return {
      x: inside((event.clientX - box.left) / box.width),
      y: inside((event.clientY - box.top) / box.height),
      pressure,
    };
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || current !== null) return;
    event.preventDefault();
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    pen = null;
    current = [pointAt(event)];
    redraw();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (current === null || pen !== null || !canvas.hasPointerCapture(event.pointerId)) return;
    const events = event.getCoalescedEvents?.() ?? [];
    for (const one of events.length > 0 ? events : [event]) extend(current, pointAt(one));
    redraw();
  });
  canvas.addEventListener("pointerup", finish);
  canvas.addEventListener("pointercancel", finish);

  canvas.addEventListener("keydown", (event) => {
    const isUndo = event.key === "Backspace" || (event.key === "z" && (event.ctrlKey || event.metaKey));
    if (event.key in ARROWS) movePen(...ARROWS[event.key]);
    else if (event.key === " ") dipPen();
    else if (event.key === "Enter") {
      finish();
      done();
    } else if (isUndo) undo();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  canvas.addEventListener("blur", () => {
    finish();
    pen = null;
    redraw();
  });

  function movePen(right, down) {
    pen ??= { x: 0.5, y: 0.5 };
    const inside = (value) => Math.min(0.95, Math.max(0.05, value));
    pen = { x: inside(pen.x + right * KEY_STEP), y: inside(pen.y + down * KEY_STEP), pressure: 0.5 };
    if (current !== null) extend(current, pen);
    redraw();
  }

  function dipPen() {
    pen ??= { x: 0.5, y: 0.5, pressure: 0.5 };
    if (current !== null) return finish();
    current = [pen];
    redraw();
  }

  redraw();
  const setLabel = (label) => canvas.setAttribute("aria-label", `${label}. ${HELP}`);
  return { element: canvas, setLabel, undo, clear, isEmpty: () => strokes.length === 0, file: () => picture(strokes) };
}
