"""Meta-training: configuration, recipes, the outer loop, checkpoints, run folders and trained models."""

# Names are loaded at their first use, and those of a configuration without torch, so that
# `firststep train --help` does not wait for it.

from importlib import import_module
from typing import TYPE_CHECKING, Any

from firststep.utils.extras import extra

if TYPE_CHECKING:
    from firststep.training.public import *  # noqa: F403
    from firststep.training.public import __all__ as __all__
else:
    with extra("cli", "firststep.training"):  # report a missing package now, not at the first use
        from firststep.data import DATASETS as _needs_the_extra  # noqa: F401

    _WITHOUT_TORCH = {
        **dict.fromkeys(("RECIPES", "recipe"), "recipes"),
        **dict.fromkeys(("BUILTIN", "builtin_models"), "builtin"),
        **dict.fromkeys(("TrainConfig", "choices"), "config"),
        "PretrainConfig": "pretrain_config",
        **dict.fromkeys(("DataSettings", "NetworkSettings", "MethodSettings"), "settings"),
        **dict.fromkeys(("OuterLoopSettings", "RunningSettings", "TaskSettings"), "settings"),
    }

    def __getattr__(name: str) -> Any:
        if name.startswith("_") and name != "__all__":  # looked up by Python during the import
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        public = import_module(f"{__name__}.{_WITHOUT_TORCH.get(name, 'public')}")
        if name not in vars(public):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(public, name)
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
