"""Calls of the library with arguments of every kind: a finite result, or an error that a caller expects."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from campaigns.fuzz.case import Case, Room

NOT_TENSORS: tuple[Any, ...] = (None, 3, "x", [], [1.0, 2.0], {}, object, 2.5, True)
VALUES = (0.0, 1.0, -1.0, 1e-320, 1e-30, 1e30, 1e300, float("nan"), float("inf"), -float("inf"))
NUMBERS: tuple[Any, ...] = (0, 1, 2, -1, 0.5, 1e-9, 1e9, 1e308, float("nan"), float("inf"), None, "x", True, 10**30, [1], 1 + 2j)


def case(rng: Random, room: Room) -> Case:
    name = rng.choice(list(CALLS))
    make = CALLS[name]
    words, call = make(rng, room)
    return Case(what=f"{name}({words})", call=call, writes=("cache",))


Made = tuple[str, Callable[[], object]]


def _tensor(rng: Random, *shape: int, whole: float = 0.6) -> Any:
    """Usually of the shape; sometimes of another, of another type, with odd values, or no tensor at all."""
    import torch

    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    if rng.random() < whole:
        return torch.randn(shape, generator=generator)
    kind = rng.choice(("shape", "shape", "dtype", "value", "value", "values", "none", "big", "small", "stride", "grad"))
    if kind == "none":
        return rng.choice(NOT_TENSORS)
    if kind == "shape":
        sizes = list(shape)
        action = rng.randrange(4)
        if action == 0 and sizes:
            sizes[rng.randrange(len(sizes))] = rng.choice((0, 1, 2, 7))
        elif action == 1 and sizes:
            sizes.pop(rng.randrange(len(sizes)))
        elif action == 2:
            sizes.insert(rng.randrange(len(sizes) + 1), rng.choice((1, 2, 0)))
        else:
            sizes = [0]
        return torch.randn(sizes, generator=generator)
    made = torch.randn(shape, generator=generator)
    if kind == "dtype":
        types = (torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int8, torch.bool, torch.complex64)
        return made.to(rng.choice(types))
    if kind == "value" and made.numel():
        made.view(-1)[rng.randrange(made.numel())] = rng.choice(VALUES)
    elif kind == "values":
        made = torch.full(shape, rng.choice(VALUES), dtype=rng.choice((torch.float32, torch.float64)))
    elif kind == "big":
        made = made.double() * rng.choice((1e20, 1e150, 1e300))
    elif kind == "small":
        made = made.double() * rng.choice((1e-20, 1e-150, 1e-310))
    elif kind == "stride":
        made = torch.randn((2, *shape), generator=generator)[0].expand(shape)
    else:
        made.requires_grad_()
    return made


def _labels(rng: Random, samples: int, classes: int, whole: float = 0.7) -> Any:
    import torch

    if rng.random() < whole:
        return torch.tensor([i % classes for i in range(samples)])
    choices: tuple[Any, ...] = (
        *(torch.full((samples,), classes), torch.full((samples,), -1), torch.zeros(samples), torch.zeros(samples, dtype=torch.bool)),
        *(torch.zeros(samples + 1, dtype=torch.long), torch.zeros(0, dtype=torch.long), torch.zeros((samples, 1), dtype=torch.long)),
        *(torch.zeros(samples, dtype=torch.int8), torch.full((samples,), 2**40), torch.tensor(0), None, [0] * samples, "x"),
        *(torch.zeros(samples, dtype=torch.uint8), torch.zeros(samples, dtype=torch.int32)),
    )
    return rng.choice(choices)


def _show(*values: Any) -> str:
    import torch

    def one(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        return repr(value)[:40]

    return ", ".join(map(one, values))


def _grams(function: str) -> Callable[[Random, Room], Made]:
    def make(rng: Random, room: Room) -> Made:
        import torch

        import firststep

        n = rng.choice((1, 2, 5))
        gram = _tensor(rng, n, rng.choice((1, 3, 8)), whole=0.5)
        if isinstance(gram, torch.Tensor) and gram.dim() >= 2 and rng.random() < 0.8 and gram.dtype != torch.bool:
            gram = gram.float() @ gram.float().mT if gram.dtype == torch.float16 else gram @ gram.mT
        options = {} if rng.random() < 0.6 else {"rtol": rng.choice(NUMBERS)}
        if function == "eigenvalues":
            options = {}
        call = getattr(firststep, function)
        return _show(gram, options), lambda: call(gram, **options)

    return make


def _losses(function: str) -> Callable[[Random, Room], Made]:
    def make(rng: Random, room: Room) -> Made:
        import firststep

        n, classes = rng.choice((1, 2, 10)), rng.choice((2, 5))
        logits, labels = _tensor(rng, n, classes, whole=0.7), _labels(rng, n, classes)
        arguments: tuple[Any, ...] = (logits, labels)
        if function != "cross_entropy_residuals":
            arguments = (_tensor(rng, n, rng.choice((1, 6)), whole=0.7), *arguments)
        call = getattr(firststep, function)
        return _show(*arguments), lambda: call(*arguments)

    return make


def _residuals(rng: Random, room: Room) -> Made:
    import firststep

    losses = _tensor(rng, rng.choice((1, 5)))
    return _show(losses), lambda: firststep.residuals(losses)


def _network(rng: Random) -> Any:
    from torch import nn

    kind = rng.random()
    if kind < 0.8:
        return nn.Sequential(nn.Flatten(), nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 3))
    return rng.choice((nn.Identity(), nn.Flatten(), nn.Linear(12, 3), None, 5, nn.Sequential(), nn.Linear(12, 3).half(), nn.ReLU))


def _meta(rng: Random) -> tuple[str, Callable[[], Any]]:
    import firststep
    from firststep import Conditioning

    network = _network(rng)
    rules = ("maml", "fomaml", "anil", "boil", "meta_sgd", "meta_curvature", "gap", "modgrad", "maml_plus_plus", "warp_maml")
    rule = rng.choice(rules)
    rate = rng.choice((0.1, 0.1, 0.1, *NUMBERS))
    steps = rng.choice((1, 2, 2, 2, rng.choice(NUMBERS)))
    if isinstance(steps, int | float) and steps == steps and abs(steps) > 100:
        steps = -5  # many steps only take long
    options: dict[str, Any] = {"steps": steps}
    if rng.random() < 0.5:
        weight, subset = rng.choice((1.0, 1.0, *NUMBERS)), rng.choice(("cls", "all", "emb", "ebn", "", "x", "cls+all", None))
        options["conditioning"] = lambda: Conditioning(subset=subset, weight=weight)
    if rng.random() < 0.15:
        options[rng.choice(("reduction", "engine", "classifier", "memory", "streams", "embedding"))] = rng.choice(("x", "mean", *NUMBERS))

    def build() -> Any:
        given = dict(options)
        if callable(given.get("conditioning")):
            given["conditioning"] = given["conditioning"]()
        function = getattr(firststep, rule)
        made = function(steps=steps, rate=rate) if rule == "maml_plus_plus" else function(rate=rate)
        return firststep.MetaLearner(network, made, **given)

    shown = {k: v for k, v in options.items() if k != "conditioning"}
    return f"{type(network).__name__}, {rule}(rate={rate!r}), {shown}", build


def _meta_loss(rng: Random, room: Room) -> Made:
    words, build = _meta(rng)
    task = (_tensor(rng, 6, 12, whole=0.85), _labels(rng, 6, 3, 0.85), _tensor(rng, 3, 12, whole=0.85), _labels(rng, 3, 3, 0.85))
    tasks: Any = rng.choice(([task],) * 8 + ([], None, task, [task[:3]], [None], 5))

    def call() -> object:
        meta = build()
        loss = meta(tasks)
        loss.backward()
        return loss, [p.grad for p in meta.parameters() if p.grad is not None]

    return f"{words}; {_show(*task)}", call


def _meta_adapt(rng: Random, room: Room) -> Made:
    words, build = _meta(rng)
    images, labels = _tensor(rng, 6, 12, whole=0.8), _labels(rng, 6, 3, 0.8)
    steps = rng.choice((None, 0, 1, 3, -1, 1.5, "x", True))
    what = rng.choice(("adapt", "condition_number", "choose_steps"))

    def call() -> object:
        meta = build()
        if what == "adapt":
            return meta.adapt(images, labels, steps=steps)(images)
        if what == "condition_number":
            return meta.condition_number(images, labels, subset=rng.choice(("cls", "all", "x")))
        return meta.choose_steps(images, labels).steps

    return f"{what}: {words}; {_show(images, labels, steps)}", call


def _backbone(rng: Random, room: Room) -> Made:
    import firststep

    sizes = (16, 32, *NUMBERS[:6], 3, None, "x", True, 1.5, 10**9)
    name = rng.choice(("conv4", "conv6", "resnet10", "", "x", None, 4))
    ways = rng.choice((5, 2, 5, *NUMBERS[:6], None, "x", True, 10**12))
    options = {"ways": ways, "image_size": rng.choice(sizes)}
    if rng.random() < 0.6:
        options["filters"] = rng.choice((4, 1, 8, 0, -1, 1.5, None, "x", True, 10**9))
    if rng.random() < 0.3:
        options["channels"] = rng.choice((1, 3, 0, -1, None, "x", 10**9))
    return f"{name!r}, {options}", lambda: firststep.build_backbone(name, **options)  # type: ignore[arg-type]


def _method(rng: Random, room: Room) -> Made:
    import firststep

    name = rng.choice((*firststep.METHODS, "", None, 5))
    options = {"steps": rng.choice(NUMBERS[:13]), "rate": rng.choice(NUMBERS)}
    return f"{name!r}, {options}", lambda: firststep.build_method(name, **options).rule.name  # type: ignore[arg-type]


def _config(rng: Random, room: Room) -> Made:
    import dataclasses

    from firststep.training import TrainConfig

    names = [field.name for field in dataclasses.fields(TrainConfig)]
    values = {rng.choice(names): rng.choice((*NUMBERS, "x", "", {}, (), b"x", [])) for _ in range(rng.choice((1, 2)))}
    return repr(values)[:80], lambda: TrainConfig(**values).describe()  # type: ignore[arg-type]


def _episodes(rng: Random, room: Room) -> Made:
    from firststep.data import Episodes, open_dataset

    numbers = (1, 2, 3, 2, 0, -1, 10**9, 10**30, 1.5, None, "x", True)
    options = {name: rng.choice((2, *numbers)) for name in ("ways", "shots", "queries", "seed")}
    index = rng.choice((0, 1, *numbers))
    cache, split = room.stock.folder / "cache", rng.choice(("train", "val", "", None, 3))

    def call() -> object:
        data = open_dataset("folder", room.stock.pictures, image_size=16, cache_folder=cache)
        return list(Episodes(data.split(split), **options)[index])

    return f"{options}, {index!r}, split {split!r}", call


def _open(rng: Random, room: Room) -> Made:
    from firststep.data import open_dataset

    odd: tuple[Any, ...] = (0, -1, 3, 5000, 16, 16, 1.5, "x", True, 10**30, None)
    options = {name: rng.choice(odd) for name in rng.sample(("image_size", "channels", "seed", "rotations"), 2)}
    name, path = rng.choice((("folder", room.stock.pictures),) * 4 + (("x", None), (None, None), ("folder", 5), ("folder", "")))

    def call() -> object:
        return open_dataset(name, path, cache_folder="cache", **options).fingerprint

    return f"{name!r}, {options}", call


CALLS: dict[str, Callable[[Random, Room], Made]] = {
    **{name: _grams(name) for name in ("eigenvalues", "condition_number", "log_condition_number", "numerical_rank", "log_eigenvalue_variance")},
    **{name: _losses(name) for name in ("classifier_gram", "conditioning_loss", "cross_entropy_residuals")},
    "residuals": _residuals,
    "MetaLearner": _meta_loss,
    "MetaLearner.": _meta_adapt,
    "build_backbone": _backbone,
    "build_method": _method,
    "TrainConfig": _config,
    "Episodes": _episodes,
    "open_dataset": _open,
}
