"""``firststep demo``: show the method's effect on the embedded glyphs within minutes."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro

from firststep.cli.terminal import COLUMNS, console
from firststep.training import recipe

QUICK = {"updates": 20, "episodes": 10}
"""Number of updates that runs everything but is too small to show the effect."""
MINUTES = "about two minutes on two cores"
"""Estimate for AVX2: a cold start took 90 CPU seconds with AVX-512, which is twice as fast."""


def demo(
    *,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None,
    updates: int | None = None,
    episodes: int = 60,
    seed: int | None = None,
    recompute: bool = False,
    quick: bool = False,
) -> None:
    """Meta-train three models on glyphs side by side, test them, and show the difference: MAML; MAML with
    the conditioning loss (the paper's pair); and with the loss and a shared head (all classes start alike).

    Then show the stored test of the three models that come with firststep. They were trained for longer, by
    the recipes `glyphs-paper` and `glyphs`.

    Args:
        out: Folder for the runs, tables and images; demo, demo-2, ... if left out. An interrupted demo of the
            same settings is resumed.
        updates: Number of meta-updates per run; the recipe's if left out.
        episodes: Number of test episodes for the newly trained models.
        seed: Seed of the initial values and the training episodes; the recipe's if left out.
        recompute: Test the models that come with firststep again, on as many episodes as the others.
        quick: Check the installation in half a minute: 20 updates and at most 10 test episodes, too few to
            show the effect.
    """
    if quick:
        updates = QUICK["updates"] if updates is None else updates
        episodes = min(episodes, QUICK["episodes"])
    config = recipe("demo")
    if updates is not None:
        config = replace(config, updates=updates)
    if seed is not None:
        config = replace(config, seed=seed)
    took = f" This takes {MINUTES}." if updates is None else ""
    about = (
        f"Meta-training three models on glyphs for {config.total_updates} updates each: MAML, with the "
        f"conditioning loss, and with the loss and a shared head. All else is the same.{took}"
    )
    console().print(textwrap.fill(about, COLUMNS))
    from firststep.cli.demo_run import run_demo  # imports torch, which takes seconds: after the line above

    run_demo(config, out, episodes, recompute=recompute)
