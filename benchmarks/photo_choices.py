"""The choices in `adapt` for photographs, measured on the CIFAR-FS validation classes.

    python benchmarks/photo_choices.py --data-path CIFAR --out results/photos/choices

Measured are the members of the average, the power of the features, the temperature where none can be
fitted, the limit of "none of these" with one image per class, views at test time, the inner rate of the step
view, and the two constants of the promised accuracy. All values of a choice get the same episodes.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.evaluation import _few_shot, _promise, half_width
from firststep.evaluation._few_shot import PROBES, fit_few_shot
from firststep.evaluation._few_shot_head import NONE_LIMIT
from firststep.meta_learner import MetaLearner
from firststep.training import load_trained
from photo_features import NOW, Photos
from photos import Episode, episodes, write_settings

SPREADS = (1.0, 1.5, 2.0, 2.5)
LEARNINGS = (0.0, 0.35, 0.7)
TEMPERATURES = (0.2, 0.3, 0.4, 0.6, 1.0)
UNSEEN = (0.1, 0.3, 0.5)
BUILT_IN_RATE = 0.02
RATES = (0.005, 0.01, 0.02, 0.04)
VIEWS = {"whole": ("whole",), "whole and flip": ("whole", "flip"), "three": ("whole", "flip", "zoom")}
PROMISED = ((2, 5), (5, 2), (5, 3), (5, 5), (5, 10), (10, 5))
"""Ways and shots of the draws for the promise."""
CHOSEN = ((5, 1), (5, 5))
"""Ways and shots of the episodes for all other choices."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-path", required=True, type=Path)
    parser.add_argument("--cache", type=Path, default=Path("photo-features"), help="folder for features")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--draws", type=int, default=60, help="of the promise, for each ways and shots")
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    photos = Photos(options.data_path, options.cache)
    views = {view: photos.features(NOW, "val", view) for view in ("whole", "flip", "zoom")}
    background = load_trained("builtin:photos").background
    rows = []
    for ways, shots in sorted({*CHOSEN, *PROMISED}):
        several: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        count = options.draws if (ways, shots) in PROMISED else options.episodes
        for number, episode in enumerate(episodes(views["whole"].shape, ways, shots, count)):
            found = dict(_promised(views["whole"], background, episode)) if shots > 1 else {}
            if number < options.episodes and (ways, shots) in CHOSEN:
                found |= dict(_choices(views, background, episode))
            for name, value in found.items():
                several[name].append(value)
        for name, values in several.items():
            mean, half = float(np.mean(values)), float(half_width(np.array(values)))
            rows.append([*name[:2], ways, shots, name[2], round(mean, 4), round(half, 4), len(values)])
            print(*rows[-1], sep="\t", flush=True)
    write_settings(options.out, "benchmarks/photo_choices.py")
    with open(options.out / "numbers.csv", "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["choice", "value", "ways", "shots", "measure", "mean", "half_width", "episodes"])
        table.writerows(rows)


def _choices(
    views: dict[str, np.ndarray], background: Tensor | None, episode: Episode
) -> Iterator[tuple[tuple[str, str, str], float]]:
    whole = views["whole"]
    for power in (0.5, 1.0):
        members = {"average": PROBES} | {name: {name: probe} for name, probe in PROBES.items()}
        for name, probes in members.items():
            outputs = _fitted(whole, whole, background, episode, probes=probes, power=power)
            yield from _judged(f"power {power}", name, outputs, episode)
    for name, members_of_view in VIEWS.items():
        mean = np.mean([views[view] for view in members_of_view], axis=0)
        yield from _judged("views of all images", name, _fitted(mean, mean, background, episode), episode)
        outputs = _fitted(whole, mean, background, episode)
        yield from _judged("views of queries", name, outputs, episode)
    if episode.shots == 1:
        for temperature in TEMPERATURES:
            with _constant("UNCALIBRATED", temperature):
                outputs = _fitted(whole, whole, background, episode)
            yield from _judged("temperature", str(temperature), outputs, episode)
        for unseen in UNSEEN:
            with _constant("_UNSEEN", unseen):
                fitted = fit_few_shot(
                    _of(whole, episode.support), episode.support_labels, background=background
                )
            for measure, rows in (("kept", episode.query), ("false accepts", episode.others)):
                below = fitted.head(_of(whole, rows))[:, -1] <= NONE_LIMIT
                yield ("quantile of the background", str(unseen), measure), below.double().mean().item()
    meta = load_trained("builtin:photos").meta.for_classes(episode.ways)
    for rate in RATES:
        yield from _judged(
            "inner rate", str(rate), _stepped(meta, whole, episode, rate / BUILT_IN_RATE), episode
        )


def _promised(
    whole: np.ndarray, background: Tensor | None, episode: Episode
) -> Iterator[tuple[tuple[str, str, str], float]]:
    fitted = fit_few_shot(_of(whole, episode.support), episode.support_labels, background=background)
    outputs = fitted.head(_of(whole, episode.query))[:, : episode.ways]
    accuracy = (outputs.argmax(1) == episode.query_labels).double().mean().item()
    assert fitted.held_out is not None
    promise = fitted.held_out.promise
    for learning in LEARNINGS:
        for spread in SPREADS:
            with _constant("LEARNING", learning), _constant("SPREAD", spread):
                low, high = promise.interval
                value = f"learning {learning}, spread {spread}"
                yield ("promise", value, "within the interval"), float(low <= accuracy <= high)
                yield ("promise", value, "width"), high - low
                yield ("promise", value, "promised"), promise.expected
    yield ("promise", "", "found"), accuracy


class _constant:
    """Give a constant of the module another value."""

    def __init__(self, name: str, value: float) -> None:
        self.module = _promise if hasattr(_promise, name) else _few_shot
        self.name, self.value, self.before = name, value, getattr(self.module, name)

    def __enter__(self) -> None:
        setattr(self.module, self.name, self.value)

    def __exit__(self, *error: object) -> None:
        setattr(self.module, self.name, self.before)


def _fitted(
    known: np.ndarray, asked: np.ndarray, background: Tensor | None, episode: Episode, **options: object
) -> Tensor:
    """Return log-probabilities of the queries."""
    fitted = fit_few_shot(
        _of(known, episode.support),
        episode.support_labels,
        background=background,
        none=False,
        **options,  # type: ignore[arg-type]
    )
    return fitted.head(_of(asked, episode.query))


def _stepped(built_in: MetaLearner, whole: np.ndarray, episode: Episode, factor: float) -> Tensor:
    """Return log-probabilities after the five steps of `adapt --steps 5`."""
    meta = built_in.scaled(factor)
    support = _of(whole, episode.support)
    params = meta.adapted_params(support, episode.support_labels, steps=5)
    with torch.no_grad():
        return meta.functional(params, _of(whole, episode.query)).logits.log_softmax(1)


def _judged(
    choice: str, value: str, outputs: Tensor, episode: Episode
) -> Iterator[tuple[tuple[str, str, str], float]]:
    right = (outputs.argmax(1) == episode.query_labels).double().mean().item()
    yield (choice, value, "accuracy"), right
    yield (choice, value, "log-loss"), F.nll_loss(outputs, episode.query_labels).item()


def _of(features: np.ndarray, rows: np.ndarray) -> Tensor:
    return torch.from_numpy(features.reshape(-1, features.shape[-1])[rows.ravel()])


if __name__ == "__main__":
    main()
