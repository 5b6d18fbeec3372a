// The slider over the inner steps, and the button that plays them.

import { button, h, newId, setText } from "../parts/dom.js";
import { choose, on, state } from "../store.js";

const EVERY = 700;

export function makeSteps() {
  let timer = null;
  const id = newId("step");
  const slider = h("input", { type: "range", id, min: 0, max: state.limits.steps, value: state.step, step: 1 });
  const shown = h("output", { for: id, class: "step-now" });
  const play = button("Play", () => (timer === null ? start() : stop()), { class: "play", "aria-label": "Play the steps" });
  slider.addEventListener("input", () => {
    const step = Number(slider.value); // before stop() shows the old one
    stop();
    choose({ step });
  });

  function start() {
    choose({ step: 0 });
    timer = setInterval(() => {
      if (state.step >= state.limits.steps) return stop();
      choose({ step: state.step + 1 });
    }, EVERY);
    show();
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    show();
  }

  function show() {
    slider.max = state.limits.steps;
    slider.value = state.step;
    slider.setAttribute("aria-valuetext", `step ${state.step}`);
    setText(shown, String(state.step));
    setText(play, timer === null ? "Play" : "Stop");
    play.setAttribute("aria-label", timer === null ? "Play the steps" : "Stop");
  }

  on("choice models", show);
  show();
  return h("div", { class: "steps" }, h("label", { for: id }, "Gradient steps taken"), shown, slider, play);
}
