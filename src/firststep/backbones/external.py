"""``--network``: build other people's networks, and prepare images for them.

``package.module:NAME``   a module of the user's own, or a function that makes one
``timm:NAME``             a model of timm
``hf:NAME``               an image classifier of Hugging Face's transformers; NAME may be a folder
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from firststep.backbones.importing import importing
from firststep.backbones.user_network import code_of_the_user, make_network
from firststep.errors import FirststepError

TIMM, HUGGING_FACE = "timm:", "hf:"
DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
OWN_WEIGHTS = "default"
"""Value of ``pretrained`` that selects the library's own weights for a model."""


def check_spec(network: str) -> None:
    """Refuse a malformed name before anything is built."""
    kind, colon, name = network.partition(":")
    if not (kind and colon and name):
        raise FirststepError(
            f"`network={network}`: use package.module:NAME, {TIMM}NAME or {HUGGING_FACE}NAME; networks of "
            "firststep are named with `backbone`"
        )


def native_image_size(network: str) -> int | None:
    """Return the image size that a network was made for; None if it does not say."""
    check_spec(network)
    if network.startswith(TIMM):
        name = network.removeprefix(TIMM)
        timm = _import_timm(network)
        with code_of_the_user(f"timm has no {name}"):
            facts = timm.get_pretrained_cfg(name)
        return None if facts is None else int(facts.input_size[-1])
    if network.startswith(HUGGING_FACE):
        name = network.removeprefix(HUGGING_FACE)
        with importing("transformers", network):
            from transformers import AutoConfig
        with code_of_the_user(f"transformers cannot read {name}"):
            size = getattr(AutoConfig.from_pretrained(name), "image_size", None)
        return size if isinstance(size, int) else None
    return None


def build_external(
    network: str,
    *,
    ways: int,
    image_size: int | None,
    channels: int,
    seed: int,
    pretrained: str | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    load_weights: bool = True,
) -> nn.Module:
    """Build the network with one output per class.

    Args:
        network: the network; see this module's docstring.
        ways: number of outputs.
        image_size: side of the images; None for the network's own.
        channels: number of channels of the images.
        seed: seed of the initial values.
        pretrained: ``default`` for the library's own weights, or a file of weights. With weights the
            network is in ``eval()`` mode, where batch norm uses the running statistics that belong to them.
            Otherwise it is in ``train()`` mode with dropout off.
        mean: with ``std``, the normalisation of the images that it will get. If the network was made for
            another normalisation, a step that converts the images is added.
        load_weights: whether to read ``pretrained``; False if other weights are loaded next.

    Examples:
        >>> from firststep.backbones import build_external
        >>> where = "firststep.backbones:Conv"  # or timm:NAME, or hf:NAME
        >>> conv4 = build_external(where, ways=3, image_size=32, channels=3, seed=0)
        >>> conv4(torch.rand(2, 3, 32, 32)).shape
        torch.Size([2, 3])
    """
    check_spec(network)
    weights = pretrained if load_weights else None
    with torch.random.fork_rng(devices=[]):  # all devices would initialise CUDA
        torch.default_generator.manual_seed(seed)
        if network.startswith(TIMM):
            built, own = _timm(network.removeprefix(TIMM), ways, image_size, channels, weights)
        elif network.startswith(HUGGING_FACE):
            # Weights are for one image size, which is in the model's own configuration.
            size = image_size if pretrained is None else None
            built, own = _hugging_face(network.removeprefix(HUGGING_FACE), ways, size, channels, weights)
        else:
            if pretrained is not None:
                raise FirststepError(
                    f"`pretrained` goes with {TIMM}NAME and {HUGGING_FACE}NAME; {network} loads weights "
                    "itself, or `init` takes a safetensors file"
                )
            options = {"ways": ways, "num_classes": ways, "image_size": image_size, "channels": channels}
            built, own = make_network(network, options), None
    if pretrained is None:
        built.train()
        for module in built.modules():
            if isinstance(module, DROPOUT):
                module.eval()
    else:
        built.eval()
    if own is not None and mean is not None and std is not None:
        _renormalise(built, (mean, std), own)
    return built


Normalisation = tuple[Sequence[float], Sequence[float]]


def _timm(
    name: str, ways: int, image_size: int | None, channels: int, pretrained: str | None
) -> tuple[nn.Module, Normalisation | None]:
    timm = _import_timm(TIMM + name)
    options: dict[str, Any] = {
        "num_classes": ways,
        "in_chans": channels,
        "pretrained": pretrained is not None,
    }
    if _is_file(pretrained):
        options["pretrained_cfg_overlay"] = {"file": str(pretrained)}
    with code_of_the_user(f"timm cannot make {name}"):
        if image_size is not None and _takes_image_size(timm, name):
            options["img_size"] = image_size
        model = timm.create_model(name, **options)
        facts = timm.data.resolve_model_data_config(model)
    return model, (facts["mean"], facts["std"]) if channels == len(facts["mean"]) else None


def _import_timm(network: str) -> Any:
    with importing("timm", network):
        import timm
        import timm.data
    return timm


def _takes_image_size(timm: Any, name: str) -> bool:
    """Return whether the model is built for a fixed image size, as vision transformers are."""
    pretrained_cfg = timm.get_pretrained_cfg(name)
    return bool(pretrained_cfg is not None and pretrained_cfg.fixed_input_size)


def _hugging_face(
    name: str, ways: int, image_size: int | None, channels: int, pretrained: str | None
) -> tuple[nn.Module, Normalisation | None]:
    with importing("transformers", HUGGING_FACE + name):
        from transformers import AutoConfig, AutoImageProcessor, AutoModelForImageClassification
    options: dict[str, Any] = {"num_labels": ways}
    with code_of_the_user(f"transformers cannot make {name}"):
        config = AutoConfig.from_pretrained(name)
        if image_size is not None and hasattr(config, "image_size"):
            options["image_size"] = image_size
        if hasattr(config, "num_channels"):
            options["num_channels"] = channels
        if pretrained is None:
            for option, value in options.items():
                setattr(config, option, value)
            model = AutoModelForImageClassification.from_config(config)
        else:
            with _folder_of(config, pretrained) if _is_file(pretrained) else nullcontext(name) as source:
                model = AutoModelForImageClassification.from_pretrained(
                    source, ignore_mismatched_sizes=True, **options
                )
    return model, _processor(AutoImageProcessor, name, channels)


def _is_file(pretrained: str | None) -> bool:
    """Return whether ``pretrained`` names a file of weights; refuse one that does not exist."""
    if pretrained in (None, OWN_WEIGHTS):
        return False
    if not Path(str(pretrained)).is_file():
        raise FirststepError(f"`pretrained` {pretrained}: there is no such file")
    return True


@contextmanager
def _folder_of(config: Any, weights: str | None) -> Iterator[str]:
    """Make a folder as transformers reads it from a configuration and a safetensors file."""
    if Path(str(weights)).suffix != ".safetensors":
        raise FirststepError(f"`pretrained` {weights}: for {HUGGING_FACE}NAME it is a .safetensors file")
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        shutil.copyfile(str(weights), Path(folder) / "model.safetensors")
        yield folder


def _processor(processors: Any, name: str, channels: int) -> Normalisation | None:
    """Return the normalisation of the model's own processor; None if it has none."""
    try:
        processor = processors.from_pretrained(name)
    except (OSError, ValueError, ImportError):
        return None
    mean, std = getattr(processor, "image_mean", None), getattr(processor, "image_std", None)
    return (mean, std) if mean and std and len(mean) == channels else None


def _renormalise(network: nn.Module, given: Normalisation, wanted: Normalisation) -> None:
    """Convert images normalised by ``given`` to the normalisation ``wanted`` at the network's input."""
    mean, std = (torch.tensor(part, dtype=torch.float64) for part in given)
    own_mean, own_std = (torch.tensor(part, dtype=torch.float64) for part in wanted)
    scale, shift = std / own_std, (mean - own_mean) / own_std
    if torch.equal(scale, torch.ones_like(scale)) and not shift.any():
        return

    def hook(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        images: Tensor = inputs[0]
        return (images * scale.to(images)[:, None, None] + shift.to(images)[:, None, None], *inputs[1:])

    network.register_forward_pre_hook(hook)


def freeze(network: nn.Module, patterns: str) -> int:
    """Fix the parameters whose names match one of the comma-separated patterns; return how many.

    Examples:
        >>> from firststep.backbones import freeze
        >>> conv4 = fs.build_backbone("conv4", image_size=32, filters=8)
        >>> freeze(conv4, "blocks.0.*,blocks.1.*")
        8
        >>> conv4.blocks[0].conv.weight.requires_grad
        False
    """
    frozen = 0
    names = [name for name, _ in network.named_parameters()]
    for pattern in filter(None, (part.strip() for part in patterns.split(","))):
        matching = [name for name in names if fnmatchcase(name, pattern)]
        if not matching:
            raise FirststepError(
                f"`freeze` {pattern}: no parameter has such a name; the first are {', '.join(names[:4])}"
            )
        for name in matching:
            network.get_parameter(name).requires_grad_(False)
        frozen += len(matching)
    if all(not parameter.requires_grad for parameter in network.parameters()):
        raise FirststepError(f"`freeze={patterns}` leaves nothing to learn")
    return frozen
