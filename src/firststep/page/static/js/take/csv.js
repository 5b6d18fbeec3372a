// All predictions as a table: a line for each question, model and step.

import { NONE, answers } from "../adaptation.js";
import { classById, state, workingModels } from "../store.js";

function cell(value) {
  const text = String(value);
  // A spreadsheet would take a name that starts so for a formula.
  const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function predictionsCsv() {
  const shown = workingModels()
    .map((model) => [model, state.results.get(model.name)?.shown])
    .filter(([, one]) => one);
  const names = shown[0]?.[1].names ?? [];
  const lines = [["question", "label", "model", "step", "prediction", ...names.map((name) => `p(${name})`)]];
  for (const [model, { steps, report, queryIds, classIds, names: classes }] of shown) {
    for (const { step, probabilities } of report ? [{ step: "", ...report }] : steps.filter(Boolean)) {
      const given = answers({ steps, report, queryIds, classIds }, step);
      probabilities.forEach((row, place) => {
        const query = state.queries.findIndex((one) => one.id === queryIds[place]);
        if (query < 0) return;
        const label = classById(state.queries[query].label)?.name ?? "";
        const answer = given.get(queryIds[place]);
        const winner = answer === NONE ? NONE : classes[classIds.indexOf(answer)];
        lines.push([query + 1, label, model.name, step, winner, ...row.map((share) => share.toFixed(6))]);
      });
    }
  }
  return `${lines.map((line) => line.map(cell).join(",")).join("\n")}\n`;
}
