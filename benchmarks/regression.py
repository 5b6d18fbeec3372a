"""Does conditioning help regression? MAML beside it, by subset, weight, inner optimiser and seed.

python benchmarks/regression.py [--problems sinusoid-10 sinusoid-5] [--seeds 0 1 2] [--updates 3000]
    [--split val] [--runs runs/regression] [--out results/regression] [--at-once 2]

Every training is a run in the folder of the runs. Finished ones are skipped and interrupted ones resumed, so
the same command resumes where it stopped. The folder of the results gets numbers.csv (every run and step),
over-seeds.csv (means with the half-width of Student's t over the seeds) and README.md. Choose on ``--split
val``; ``--split test`` only for what was chosen.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from firststep.evaluation import load_evaluation
from firststep.jobs import EvaluationSpec, Job, LocalExecutor, run_jobs
from firststep.paper.over_seeds import student_half_width
from firststep.training import TrainConfig, recipe
from firststep.training.provenance import hardware
from firststep.utils.table import Table

GAMMAS = (0.01, 0.1, 1.0)
SUBSETS = ("cls", "all")
STEPS = (0, 1, 2, 3, 4, 5, 10)
IMAGES = {"tasks": "images_as_functions:glyph_tasks", "network": "images_as_functions:Siren", "rate": 0.01}
PROBLEMS: dict[str, dict[str, Any]] = {
    "sinusoid-10": {"shots": 10, "queries": 10},
    "sinusoid-5": {"shots": 5, "queries": 10},
    # 256 pixels of a glyph, of which 128 count in the Gram matrix; needs PYTHONPATH=examples
    "images": {**IMAGES, "shots": 256, "queries": 256, "meta_batch": 4, "rows": 128},
}
INNER: dict[str, dict[str, Any]] = {"maml": {}, "adam": {"method": "adam", "rate": 0.003}}
"""Adam's rate is fixed here; try others with ``--adam-rate``, on validation tasks."""
KEYS = ["problem", "method", "subset", "gamma"]


def variants(args: argparse.Namespace) -> Iterator[tuple[dict[str, Any], TrainConfig]]:
    """Return every training's configuration by its place in the table."""
    for problem in args.problems:
        base = replace(
            recipe("sinusoid"),
            **PROBLEMS[problem],
            updates=args.updates,
            validate_every=max(1, args.updates // 12),
            threads=1,
            device="cpu",
        )
        for method in args.methods:
            changes = dict(INNER[method])
            if method == "adam":
                changes["rate"] = args.adam_rate
            plain: list[dict[str, Any]] = [{"conditioning": "none", "rows": None}]
            loss = [
                {"conditioning": "variance", "subset": subset, "gamma": gamma}
                for subset in args.subsets
                for gamma in args.gammas
            ]
            for each in plain + loss:
                for seed in args.seeds:
                    place = {
                        "problem": problem,
                        "method": method,
                        "subset": each.get("subset", "none"),
                        "gamma": each.get("gamma", 0.0),
                        "seed": seed,
                    }
                    yield place, replace(base, **changes, **each, seed=seed)


def job(place: dict[str, Any], config: TrainConfig, args: argparse.Namespace) -> Job:
    name = "-".join(str(value) for value in place.values())
    options = {"split": args.split, "steps": STEPS, "episodes": args.episodes, "subset": args.measured}
    spec = EvaluationSpec(name=f"{args.split}-{args.episodes}-{args.measured}", options=options)
    return Job(name=name, config=config, folder=args.runs / name, evaluations=(spec,))


def rows(place: dict[str, Any], done: Job) -> list[dict[str, Any]]:
    """Return the result of a run, one row per step."""
    found = load_evaluation(done.evaluations[0].path(done.folder).with_suffix(".json"))
    return [{**place, **row} for row in found.rows()]


def over_seeds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return mean and half-width over the seeds per variant and step; the mean of κ is geometric."""
    frame = frame.assign(log_kappa=frame["condition_number"].map(math.log10))
    grouped = frame.groupby([*KEYS, "step"], sort=False, as_index=False)
    result = grouped.agg(
        seeds=("seed", "nunique"),
        mean_squared_error=("mean_squared_error", "mean"),
        ci95=("mean_squared_error", student_half_width),
        log_kappa=("log_kappa", "mean"),
    )
    return result.assign(condition_number=10 ** result.pop("log_kappa"))


def page(result: pd.DataFrame, args: argparse.Namespace) -> str:
    table = Table([*KEYS, *(f"step {step}" for step in STEPS), "κ at step 0"], left_aligned=3)
    for key, part in result.groupby(KEYS, sort=False):
        cells = []
        for step in STEPS:
            row = part[part["step"] == step].iloc[0]
            width = "" if pd.isna(row["ci95"]) else f" ± {row['ci95']:.2g}"
            cells.append(f"{row['mean_squared_error']:.3g}{width}")
        table.add_row(*map(str, key), *cells, f"{part.iloc[0]['condition_number']:.2g}")
    words = "one seed: an anecdote" if len(args.seeds) == 1 else f"{len(args.seeds)} seeds"
    return (
        "# Regression with and without conditioning\n\n"
        f"Mean squared error on {args.episodes} {args.split} tasks, "
        f"{args.updates} updates, {words}, with the 95 % half-width of Student's t over the seeds. Made by "
        f"`python benchmarks/regression.py`, on {hardware('cpu')}. [numbers.csv](numbers.csv) has every "
        "run.\n\n"
        f"{table.to_markdown()}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=["sinusoid-10", "sinusoid-5"])
    parser.add_argument("--methods", nargs="+", choices=INNER, default=list(INNER))
    parser.add_argument("--subsets", nargs="+", default=SUBSETS)
    parser.add_argument("--gammas", nargs="+", type=float, default=GAMMAS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--updates", type=int, default=3000)
    parser.add_argument("--adam-rate", type=float, default=0.003)
    parser.add_argument("--split", choices=["val", "test"], default="val")
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--measured", default="all", help="parameters whose κ is measured, for all alike")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--runs", type=Path, default=Path("runs/regression"))
    parser.add_argument("--out", type=Path, default=Path("results/regression"))
    args = parser.parse_args()
    jobs = {
        job(place, config, args).name: (place, job(place, config, args)) for place, config in variants(args)
    }

    def say(event: Any) -> None:
        if event.is_final:
            print(f"{event.job}: {event.state} {event.text}", flush=True)

    failed = run_jobs([each for _, each in jobs.values()], LocalExecutor(at_once=args.at_once), say)
    frame = pd.DataFrame(
        [row for name, (place, each) in jobs.items() if name not in failed for row in rows(place, each)]
    )
    args.out.mkdir(parents=True, exist_ok=True)
    frame.to_csv(args.out / "numbers.csv", index=False)
    result = over_seeds(frame)
    result.to_csv(args.out / "over-seeds.csv", index=False)
    (args.out / "README.md").write_text(page(result, args))
    print(f"written: {args.out}; failed: {len(failed)}")
    for name, reason in failed.items():
        print(f"{name}: {reason}")


if __name__ == "__main__":
    main()
