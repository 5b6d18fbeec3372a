"""How the classifier starts in every task: a row for each class, or one row for all.

``per-class``  each class has a learned row of its own: MAML as it was published.
``shared``     all rows start from one learned vector (Ye and Chao, "How to train your MAML to excel in
               few-shot classification", ICLR 2022).
``zero``       all rows start from zero (the zeroing trick: Kao, Chiu and Chen, "MAML is a noisy contrastive
               learner in classification", ICLR 2022).

With one row for all no class is favoured before the first step, and a task may have any number of classes.

Softmax does not see what all rows have in common: adding w to each of them adds w·φ to every logit. Neither
do the gradients: that of the rows is e φᵀ, and that of the features Σ_c e_c (w + w_c) = Σ_c e_c w_c, because
the errors e = softmax(z) - onehot(y) of a sample sum to 0. So in exact arithmetic ``shared`` and ``zero`` are
the same learner, and the gradient of the shared vector, the sum of those of its rows, is 0. It follows too
that before the first step nothing below the classifier has a gradient: step 1 moves the classifier alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

HEADS = ("per-class", "shared", "zero")
FEWEST_CLASSES = 2


def check_head(head: str) -> None:
    if head not in HEADS:
        raise ValueError(f"unknown head {head!r}; there are {', '.join(HEADS)}")


def set_rows(classifier: nn.Linear, rows: int, *, zero: bool = False) -> None:
    """Give a linear layer, in place, its first rows, or so many copies of its only one.

    ``zero`` sets them to 0 and freezes them.
    """
    for name, value in list(classifier.named_parameters(recurse=False)):
        kept = value.detach()[:rows] if rows <= len(value) else value.detach().expand(rows, *value.shape[1:])
        kept = torch.zeros_like(kept) if zero else kept.clone()
        setattr(classifier, name, nn.Parameter(kept, requires_grad=value.requires_grad and not zero))
    classifier.out_features = rows


def count_classes(*labels: Tensor) -> int:
    """Classes of a task by its labels 0, 1, 2, ...: the largest and one (reads the values)."""
    ways = 1 + max(int(part.max()) for part in labels)
    if ways < FEWEST_CLASSES:
        raise ValueError(f"a task needs at least {FEWEST_CLASSES} classes; its labels are 0, 1, ...")
    return ways


def repeat_row(params: Mapping[str, Tensor], names: Iterable[str], ways: int) -> dict[str, Tensor]:
    """``params`` with the one row of each of ``names`` repeated for every class; differentiable.

    What has more than one row is that of a task already, and stays.
    """
    repeated = dict(params)
    for name in names:
        if len(params[name]) == 1:
            # In memory of its own: compiled code does not take rows that lie on top of each other.
            repeated[name] = params[name].expand(ways, *params[name].shape[1:]).contiguous()
    return repeated


def sum_rows(gradients: Mapping[str, Tensor], names: Iterable[str]) -> dict[str, Tensor]:
    """The transpose of :func:`repeat_row`: the gradient of the one row is the sum of those of its copies."""
    summed = {name: gradients[name].sum(0, keepdim=True) for name in names}
    return {name: summed.get(name, value) for name, value in gradients.items()}
