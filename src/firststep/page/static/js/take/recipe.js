// The same in a terminal and in Python.

import { state } from "../store.js";

/** A word for a POSIX shell. */
const word = (text) => (/^[\w:./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

export function commandLine(model, steps, format) {
  const query = state.queries.length > 0 ? " --query query" : "";
  // A number of steps is always the adapted network; auto alone would also weigh other classifiers.
  const chosen = !model.takes_steps ? "" : steps === "auto" ? " --classifier steps --steps auto" : ` --steps ${steps}`;
  return `unzip pictures.zip\nfirststep adapt ${word(model.name)} --support support${query}${chosen} --export model.${format}`;
}

export function pythonLines(model, steps) {
  const how = model.takes_steps ? `steps=${steps === "auto" ? "None" : steps}` : 'classifier="auto", background=trained.background';
  const lines = [
    "from pathlib import Path",
    "",
    "from firststep.evaluation import adapt_to_images, load_images, load_support, query_files",
    "from firststep.training import load_trained",
    "",
    `trained = load_trained(${JSON.stringify(model.name)})`,
    'support = load_support(Path("support"), trained.meta, trained.preprocessing)',
    `adapted = adapt_to_images(trained.meta, support, ${how})`,
  ];
  if (state.queries.length > 0) {
    lines.push(
      'files = query_files(Path("query")).files',
      "images = load_images(files, trained.preprocessing, trained.meta.device)",
      "for file, row in zip(files, adapted.probabilities(images).tolist()):",
      "    print(file, support.classes[row.index(max(row))], row)",
    );
  }
  return lines.join("\n");
}
