"""The initial classifier of a task: one row per class, or one row for all classes.

``per-class``  each class has its own learned row: MAML as published.
``shared``     all rows start from one learned vector (Ye and Chao, "How to train your MAML to excel in
               few-shot classification", ICLR 2022).
``zero``       all rows start from zero (the zeroing trick: Kao, Chiu and Chen, "MAML is a noisy contrastive
               learner in classification", ICLR 2022).
``prototypes`` row c starts from the mean μ_c of class c's support features: weight 2 μ_c, bias -‖μ_c‖², the
               prototypical network as a linear layer (Proto-MAML: Triantafillou et al., "Meta-Dataset", ICLR
               2020). No row is learned; the meta-gradient goes through the means.

With one row for all, ``shared`` and ``zero``, no class is favoured before the first step, and a task may have
any number of classes.

Adding w to every row adds w·φ to every logit, which softmax ignores. The gradients ignore it too: that of the
rows is e φᵀ, and that of the features is Σ_c e_c (w + w_c) = Σ_c e_c w_c, because the errors
e = softmax(z) - onehot(y) of a sample sum to 0. So in exact arithmetic ``shared`` and ``zero`` are the same
learner, and the shared vector, whose gradient is the sum over its rows, has gradient 0. Before the first step
no parameter below the classifier has a gradient either, so step 1 moves only the classifier.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from firststep.task import label_bounds

HEADS = ("per-class", "shared", "zero", "prototypes")
ONE_ROW = ("shared", "zero")
"""The heads with which all classes start alike."""
FEWEST_CLASSES = 2


def check_head(head: str) -> None:
    if head not in HEADS:
        raise ValueError(f"unknown head {head!r}; there are {', '.join(HEADS)}")


def set_rows(classifier: nn.Linear, rows: int, *, zero: bool = False) -> None:
    """Resize a linear layer in place: keep its first rows, or repeat its only row.

    ``zero`` sets the rows to 0 and freezes them.
    """
    for name, value in list(classifier.named_parameters(recurse=False)):
        kept = value.detach()[:rows] if rows <= len(value) else value.detach().expand(rows, *value.shape[1:])
        kept = torch.zeros_like(kept) if zero else kept.clone()
        setattr(classifier, name, nn.Parameter(kept, requires_grad=value.requires_grad and not zero))
    classifier.out_features = rows


def check_labels(classes: int | None, *labels: Tensor) -> int:
    """Return the largest label; refuse labels that are negative or not below ``classes``.

    Args:
        classes: number of classifier rows; None for no bound.
        labels: labels of the support set and, if there is one, of the query set.
    """
    bounds = label_bounds(*labels)
    for name, (lowest, highest) in zip(("support", "query"), bounds, strict=False):
        if lowest < 0:
            raise ValueError(
                f"labels of the {name} set must not be negative, found {lowest}: no sample is ignored, "
                "so leave out those without a label"
            )
        if classes is not None and highest >= classes:
            raise ValueError(
                f"labels of the {name} set must be 0..{classes - 1}, one per classifier output, "
                f"found {highest}"
            )
    return max(highest for _, highest in bounds)


def count_classes(*labels: Tensor) -> int:
    """Return the number of classes of a task: its largest label plus 1."""
    ways = 1 + check_labels(None, *labels)
    if ways < FEWEST_CLASSES:
        raise ValueError(f"a task needs at least {FEWEST_CLASSES} classes; its labels are 0, 1, ...")
    return ways


def repeat_row(params: Mapping[str, Tensor], names: Iterable[str], ways: int) -> dict[str, Tensor]:
    """Return ``params`` with the one row of each of ``names`` repeated per class; differentiable.

    A tensor with several rows belongs to a task already and stays.
    """
    repeated = dict(params)
    for name in names:
        if len(params[name]) == 1:
            # Contiguous, because compiled code does not accept rows that share memory.
            repeated[name] = params[name].expand(ways, *params[name].shape[1:]).contiguous()
    return repeated


def prototype_rows(features: Tensor, labels: Tensor, ways: int) -> tuple[Tensor, Tensor]:
    """Return weight [ways, d] and bias [ways] of the nearest class mean as a linear layer; differentiable.

    Its logits are -‖φ - μ_c‖² up to ‖φ‖², which softmax ignores. A class without support samples has mean 0.
    """
    members = torch.nn.functional.one_hot(labels, ways).to(features.dtype)
    means = members.T @ features / members.sum(0).clamp_min(1).unsqueeze(-1)
    return 2 * means, -means.square().sum(-1)


def sum_rows(gradients: Mapping[str, Tensor], names: Iterable[str]) -> dict[str, Tensor]:
    """Sum the gradients of the copies of a row: the transpose of :func:`repeat_row`."""
    summed = {name: gradients[name].sum(0, keepdim=True) for name in names}
    return {name: summed.get(name, value) for name, value in gradients.items()}
