"""Tidy frames into curves and logs: one curve is one trained model or one printed row of the paper.

Frames may lack rows, columns and values. What is there is kept, what is not stays a gap.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from firststep.paper.figures.records import BACKBONES, Curve, Log, Setting

ACCURACY_WORDS = ("source", "row", "dataset", "backbone", "method", "subset", "loss")
ACCURACY_NUMBERS = (
    *("filters", "ways", "shots", "step", "rate_multiplier"),
    *("accuracy", "ci95", "condition_number", "parameters"),
)
HISTORY_WORDS = ("row", "dataset", "backbone", "method", "subset", "loss", "split", "quantity")
HISTORY_NUMBERS = ("ways", "shots", "update", "index", "value")
ONE_MODEL = ["source", "row", "dataset", "backbone", "filters", "method", "subset", "loss", "ways", "shots"]
ONE_RUN = ["row", "dataset", "backbone", "method", "subset", "loss", "ways", "shots"]


def _typed(frame: pd.DataFrame, words: Sequence[str], numbers: Sequence[str]) -> pd.DataFrame:
    """The columns that figures use: text without gaps, finite numbers or NaN; absent columns are gaps."""
    frame = frame.reindex(columns=[*words, *numbers])
    for column in words:
        frame[column] = frame[column].astype(object).where(frame[column].notna(), "").astype(str)
    for column in numbers:
        frame[column] = pd.to_numeric(frame[column], errors="coerce").astype(float)
    frame[list(numbers)] = frame[list(numbers)].replace([np.inf, -np.inf], np.nan)
    spelling = {name.lower(): name for name in BACKBONES}
    frame["backbone"] = [spelling.get(name.lower(), name) for name in frame["backbone"]]
    for column in {"filters", "ways", "shots"} & set(numbers):
        frame[column] = frame[column].fillna(0).astype(int)
    return frame


def curves(accuracies: pd.DataFrame) -> list[Curve]:
    """Every model of the frame at the rate it was trained with, in the frame's order."""
    frame = _typed(accuracies, ACCURACY_WORDS, ACCURACY_NUMBERS)
    frame = frame[frame["rate_multiplier"].isin([1.0]) | frame["rate_multiplier"].isna()]
    found = []
    for names, group in frame[frame["step"].notna()].groupby(ONE_MODEL, sort=False):
        key = dict(zip(ONE_MODEL, names, strict=True))
        # A step that is given twice counts once, and a number before a gap.
        steps = group.sort_values(["step", "accuracy"], kind="stable").drop_duplicates("step")
        found.append(
            Curve(
                source=key["source"],
                row=key["row"],
                setting=Setting(key["dataset"], key["backbone"], int(key["ways"]), int(key["shots"])),
                filters=int(key["filters"]),
                method=key["method"],
                subset=key["subset"],
                steps=steps["step"].to_numpy(),
                accuracy=steps["accuracy"].to_numpy(),
                ci95=steps["ci95"].to_numpy(),
                parameters=float(group["parameters"].max()),
            )
        )
    return found


def logs(histories: pd.DataFrame) -> list[Log]:
    """What every run logged while it trained, in the frame's order."""
    frame = _typed(histories, HISTORY_WORDS, HISTORY_NUMBERS)
    found = []
    for names, group in frame[frame["update"].notna()].groupby(ONE_RUN, sort=False):
        key = dict(zip(ONE_RUN, names, strict=True))
        setting = Setting(key["dataset"], key["backbone"], int(key["ways"]), int(key["shots"]))
        found.append(
            Log(
                row=key["row"],
                setting=setting,
                method=key["method"],
                subset=key["subset"],
                entries=group.sort_values("update", kind="stable"),
            )
        )
    return found
