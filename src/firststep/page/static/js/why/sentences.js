// What the spectrum says, in plain words.

import { large, percent, plural } from "../parts/format.js";
import { WALK_STEPS, covered } from "./walk.js";

/** About the condition number at the shown step. */
export function conditionSentence(label, message) {
  const { condition_number: number } = message;
  const ratio = `${label}: the steepest direction is ${large(number)} times as steep as the flattest`;
  if (!Number.isFinite(number)) return `${label}: some direction is flat altogether; no step moves it.`;
  if (number < 200) return `${ratio}: one step length serves them all.`;
  if (number < 5000) return `${ratio}: the flat ones lag behind.`;
  return `${ratio}: a step short enough for the one leaves the other where it was.`;
}

/** About how the eigenvalues lie. */
export function spectrumSentence(label, message) {
  const { eigenvalues } = message;
  const near = eigenvalues.filter((value) => value >= eigenvalues[0] / 100).length;
  return `${label}: ${near} of ${plural(eigenvalues.length, "eigenvalue")} lie within a factor of 100 of the largest.`;
}

/** About the picture of the bowl. */
export function walkSentence(conditionNumber) {
  const share = covered(conditionNumber);
  const words = share < 0.001 ? "less than 0.1 %" : share < 0.01 ? "less than 1 %" : percent(share);
  return `${WALK_STEPS} steps get down the steep wall, and cover ${words} of the way along the valley.`;
}
