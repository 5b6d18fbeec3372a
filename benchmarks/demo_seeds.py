"""Run ``firststep demo`` for several seeds; write the gains over MAML, by seed and together.

python benchmarks/demo_seeds.py --out results/compare/demo-seeds [--seeds 0 1 2 3 4] [--runs demo-seeds]

Finished demos in the folder of the runs are read, not run again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pandas as pd

from firststep.paper.over_seeds import student_half_width
from firststep.utils.table import Table

STEPS = (1, 5)
PAGE = """# The demo over {seeds} seeds

Test accuracy in per cent of the models that `firststep demo` trains, 5-way 5-shot: the mean over the seeds
with the 95 % half-width of Student's t over these trainings, then the gain over MAML of each seed, paired by
test episode. Made by `python benchmarks/demo_seeds.py`, which runs `firststep demo --seed N`, on {processor},
one thread per model. [numbers.csv](numbers.csv) and [by-seed.csv](by-seed.csv) have every step.

{table}"""


def processor() -> str:
    """Return the processor's name and its widest vector instructions."""
    text = Path("/proc/cpuinfo").read_text()
    name = next(line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name"))
    return f"{name} with {'AVX-512' if ' avx512f ' in text else 'AVX2'}"


def run_demo(seed: int, folder: Path) -> pd.DataFrame:
    """Run the demo with a seed; return the comparison of its models."""
    table = folder / "comparison.csv"
    if not table.is_file():
        command = [sys.executable, "-m", "firststep", "demo", "--seed", str(seed), "--out", str(folder)]
        subprocess.run(command, check=True)
    frame = pd.read_csv(table).assign(seed=seed)
    frame = frame.rename(columns={"difference": "gain", "difference_ci95": "gain_ci95"})
    return frame[["seed", "model", "step", "accuracy", "ci95", "gain", "gain_ci95"]]


def over_seeds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return mean, half-width of Student's t and smallest gain of every model and step."""
    return frame.groupby(["model", "step"], sort=False, as_index=False).agg(
        accuracy=("accuracy", "mean"),
        ci95=("accuracy", student_half_width),
        gain=("gain", "mean"),
        gain_ci95=("gain", student_half_width),
        smallest_gain=("gain", "min"),
    )


def table(frame: pd.DataFrame, numbers: pd.DataFrame) -> str:
    shown = Table(["steps", "model", "accuracy", "gain", *(f"seed {seed}" for seed in frame.seed.unique())])
    for step in STEPS:
        for row in numbers[numbers.step == step].itertuples():
            accuracy = f"{row.accuracy:.1f} ± {row.ci95:.1f}"
            each = frame[(frame.model == row.model) & (frame.step == step)].gain
            gains = ["" if pd.isna(gain) else f"{gain:+.1f}" for gain in each]
            gain = "" if pd.isna(row.gain) else f"{row.gain:+.1f} ± {row.gain_ci95:.1f}"
            shown.add_row(str(step), str(row.model), accuracy, gain, *gains)
    return shown.to_markdown()


def main() -> None:
    parser = argparse.ArgumentParser(description="the gains of `firststep demo` over several seeds")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("demo-seeds"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    chosen = parser.parse_args()
    frame = pd.concat([run_demo(seed, chosen.runs / f"seed-{seed}") for seed in chosen.seeds])
    numbers = over_seeds(frame)
    chosen.out.mkdir(parents=True, exist_ok=True)
    frame.to_csv(chosen.out / "by-seed.csv", index=False, lineterminator="\n")
    numbers.to_csv(chosen.out / "numbers.csv", index=False, lineterminator="\n")
    facts = {"seeds": len(chosen.seeds), "processor": processor()}
    (chosen.out / "README.md").write_text(PAGE.format(**facts, table=table(frame, numbers)))


if __name__ == "__main__":
    main()
