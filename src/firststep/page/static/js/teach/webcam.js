// Hold to record: a frame every fifth of a second, for models of photographs.

import { button, h } from "../parts/dom.js";

const EVERY = 200;
const SIDE = 256;

/** A folded-away camera; take(files) after the button is let go, tell(line) when there is none. */
export function makeWebcam(name, take, tell) {
  let stream = null;
  let timer = null;
  let frames = [];
  const video = h("video", { muted: true, playsinline: true, "aria-label": `Webcam picture for ${name()}` });
  const record = button("Hold to record", null, { class: "record" });
  const box = h("div", { class: "webcam", hidden: true }, video, record);
  const toggle = button("Webcam", () => (stream ? close() : open()), { class: "quiet", "aria-expanded": "false" });

  async function open() {
    try {
      stream = await navigator.mediaDevices.getUserMedia({ video: { width: 640, height: 480 } });
    } catch {
      tell("No webcam: there is none, or the browser may not use it.");
      return;
    }
    video.srcObject = stream;
    await video.play();
    box.hidden = false;
    toggle.setAttribute("aria-expanded", "true");
    record.focus();
  }

  function close() {
    stop();
    stream?.getTracks().forEach((track) => track.stop());
    stream = video.srcObject = null;
    box.hidden = true;
    toggle.setAttribute("aria-expanded", "false");
  }

  function grab() {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = SIDE;
    const side = Math.min(video.videoWidth, video.videoHeight);
    const [left, top] = [(video.videoWidth - side) / 2, (video.videoHeight - side) / 2];
    canvas.getContext("2d").drawImage(video, left, top, side, side, 0, 0, SIDE, SIDE);
    frames.push(new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.92)));
    record.textContent = `Recording: ${frames.length}`;
  }

  function start() {
    if (timer !== null || stream === null) return;
    frames = [];
    grab();
    timer = setInterval(grab, EVERY);
    record.classList.add("on");
  }

  async function stop() {
    if (timer === null) return;
    clearInterval(timer);
    timer = null;
    record.classList.remove("on");
    record.textContent = "Hold to record";
    const blobs = await Promise.all(frames);
    take(blobs.map((blob, number) => ({ file: new File([blob], `webcam-${number + 1}.jpg`), folder: "" })));
  }

  record.addEventListener("pointerdown", (event) => {
    record.setPointerCapture(event.pointerId);
    start();
  });
  record.addEventListener("pointerup", stop);
  record.addEventListener("pointercancel", stop);
  const holds = (event) => event.key === " " || event.key === "Enter";
  record.addEventListener("keydown", (event) => holds(event) && !event.repeat && start());
  record.addEventListener("keyup", (event) => holds(event) && stop());
  record.addEventListener("blur", stop);
  return { toggle, box, close };
}
