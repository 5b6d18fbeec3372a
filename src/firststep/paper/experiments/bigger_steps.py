"""Table 3: fewer but bigger steps at inference."""

from __future__ import annotations

from firststep.paper.experiment import Experiment, named_test, published_cells, twins, within
from firststep.paper.numbers import published


def table3() -> Experiment:
    """Table 3: one step at inference with a rate up to five times as large"""
    numbers = published("bigger_steps").rename(columns={"steps": "step", "lr_multiplier": "rate_multiplier"})
    longer = sorted(float(times) for times in numbers["rate_multiplier"].unique() if times != 1)
    tests = (within(), *(named_test(steps=(1,), rate_multiplier=times) for times in longer))
    return Experiment(
        name="table3",
        title="Table 3: fewer but bigger steps at inference, Conv6, 5-way 5-shot",
        rows=tuple(twins("", tests, "mini-imagenet", "conv6")),
        paper=published_cells(numbers, lambda r: r["method"], dataset="mini-imagenet", backbone="conv6"),
        columns=tuple(dict.fromkeys(zip(numbers["step"], numbers["rate_multiplier"], strict=True))),
        note="`step 1 ×3` is one step with three times the rate that was trained with.",
    )
