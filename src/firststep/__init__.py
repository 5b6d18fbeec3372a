"""firststep: few-shot learners that are good from the first gradient step.

:class:`MetaLearner` meta-learns any network, with exact second-order gradients from ``loss.backward()``. The
conditioning loss and the condition number are plain functions for training loops of your own, and
:mod:`firststep.functional` has the layer beneath, in which parameters are dicts of tensors. Importing this
needs torch, numpy and safetensors; data, training and the command line live in submodules.

Names are loaded when they are first used, so that ``firststep --help`` does not wait for torch, and Ctrl-C is
understood from the first moment on.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from firststep.public import *  # noqa: F403
    from firststep.public import __all__ as __all__
else:

    def __getattr__(name: str) -> Any:
        if name.startswith("_") and name != "__all__":  # looked up by Python during the import
            raise AttributeError(f"module 'firststep' has no attribute {name!r}")
        import importlib

        try:
            value = getattr(importlib.import_module("firststep.public"), name)
        except AttributeError:
            raise AttributeError(f"module 'firststep' has no attribute {name!r}") from None
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
