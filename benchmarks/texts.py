"""Texts: the classifier of `adapt` beside logistic regression on TF-IDF, and "none of these".

    python benchmarks/texts.py --data data_full.json --out results/texts/clinc150

The data is CLINC150 (Larson et al., EMNLP 2019, CC BY 3.0; https://github.com/clinc/oos-eval): 150 intents,
and questions without an intent. Nothing was chosen on it: all settings are those of photographs. All
classifiers get the same episodes. Features are computed once.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from firststep.deployment._internal import TextEncoder
from firststep.evaluation import half_width
from firststep.evaluation._few_shot import PROBES
from firststep.evaluation._internal import NONE_LIMIT, fit_few_shot
from photos import episodes, write_settings

OF_EACH = 30
"""Number of texts per intent: the first of the training part."""
OUT_OF_SCOPE = 500
TASKS = ((5, 1), (5, 2), (5, 5), (5, 10), (20, 1), (20, 5))
"""Ways and shots."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="data_full.json of CLINC150")
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    content = json.loads(options.data.read_text("utf-8"))
    by_intent: dict[str, list[str]] = {}
    for text, intent in content["train"]:
        by_intent.setdefault(intent, []).append(text)
    texts = np.array([by_intent[intent][:OF_EACH] for intent in sorted(by_intent)])
    strange = [text for text, _ in content["oos_test"][:OUT_OF_SCOPE]]
    encode, begun = TextEncoder(), time.process_time()
    features = encode(texts.ravel().tolist()).reshape(*texts.shape, -1)
    out_of_scope = encode(strange)
    print(
        f"{1000 * (time.process_time() - begun) / (texts.size + len(strange)):.0f} ms CPU per text",
        flush=True,
    )
    rows: list[list[object]] = []
    flat, words = features.flatten(0, 1), texts.ravel()
    for ways, shots in TASKS:
        found = []
        for episode in episodes(tuple(features.shape), ways, shots, options.episodes):
            known, asked = episode.support_labels, episode.query_labels
            support, query = episode.support.ravel(), episode.query.ravel()
            fitted = fit_few_shot(flat[support], known)
            outputs = fitted.head(flat[query])
            accuracy = (outputs[:, :ways].argmax(1) == asked).double().mean().item()
            measured = {"adapt": accuracy}
            for name in ("nearest-means", "logistic"):
                answers = PROBES[name](flat[support], known)(flat[query]).argmax(1)
                measured[f"{name} on sentence features"] = (answers == asked).double().mean().item()
            vectors = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
            counts = vectors.fit_transform(words[support])
            model = LogisticRegression(C=10.0, max_iter=1000).fit(counts, known.numpy())
            right = model.predict(vectors.transform(words[query])) == asked.numpy()
            measured["logistic on TF-IDF"] = float(right.mean())
            if fitted.held_out is not None:
                low, high = fitted.held_out.promise.interval
                measured["promised"] = fitted.held_out.promise.expected
                measured["within the interval"] = float(low <= accuracy <= high)
                known_scores = outputs[:, -1]
                measured["kept"] = (known_scores <= NONE_LIMIT).double().mean().item()
                kinds = {"out of scope": out_of_scope, "other intents": flat[episode.others.ravel()][::5]}
                for kind, others in kinds.items():
                    scores = fitted.head(others)[:, -1]
                    below = known_scores.double().quantile(0.95)
                    greater = (scores[:, None] > known_scores).double()
                    greater += 0.5 * (scores[:, None] == known_scores).double()
                    measured[f"{kind}: AUROC"] = greater.mean().item()
                    measured[f"{kind}: false accepts"] = (scores <= NONE_LIMIT).double().mean().item()
                    measured[f"{kind}: false accepts at 95 % kept"] = (scores <= below).double().mean().item()
            found.append(measured)
        for measure in found[0]:
            values = np.array([each[measure] for each in found])
            mean, half = float(values.mean()), float(half_width(values))
            rows.append([ways, shots, measure, round(mean, 4), round(half, 4), len(values)])
            print(*rows[-1], sep="\t", flush=True)
    write_settings(options.out, "benchmarks/texts.py")
    with open(options.out / "numbers.csv", "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["ways", "shots", "measure", "mean", "half_width", "episodes"])
        table.writerows(rows)


if __name__ == "__main__":
    main()
