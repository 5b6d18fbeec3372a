"""An adapted or exported classifier read back: image pixels in, probabilities out."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from firststep.deployment.card import KEY, ModelCard, read_card
from firststep.deployment.image_classifier import ImageClassifier
from firststep.errors import FirststepError
from firststep.evaluation._internal import STEPS, blank_network
from firststep.training import TrainConfig, build_meta_learner, choose_device
from firststep.utils import read_bytes
from firststep.utils.extras import extra

_ADAPTED = "adapted.safetensors"


@dataclass(frozen=True)
class DeployedModel:
    """A classifier that was read from a file: pixels in, probabilities out.

    Examples:
        >>> from firststep.deployment import deployed, make_deployable
        >>> model = deployed(*make_deployable(adapted, trained.preprocessing))
        >>> model.batch(np.zeros((3, 16, 16, 1), dtype=np.uint8)).shape
        (3, 5)
    """

    card: ModelCard
    run: Callable[[np.ndarray], np.ndarray]
    """A batch, uint8 [n, H, W, C] → probabilities [n, classes]"""

    def probabilities(
        self, pixels: np.ndarray, progress: Callable[[str, int, int], None] | None = None
    ) -> np.ndarray:
        """Of images as ``card.preprocessing`` makes them, uint8 [n, H, W, C]; [n, classes].

        They are classified one by one, because the last digits depend on the size of a batch.
        """
        found = np.zeros((len(pixels), len(self.card.classes)), dtype=np.float32)
        with _one_thread():
            for number in range(len(pixels)):
                found[number] = self.batch(pixels[number : number + 1])
                if progress is not None:
                    progress("classifying", number + 1, len(pixels))
        return found

    def batch(self, pixels: np.ndarray) -> np.ndarray:
        """The same in one batch."""
        found = self.run(np.array(pixels, order="C"))  # a copy: torch warns of arrays that are read-only
        if found.shape != (len(pixels), len(self.card.classes)):
            raise FirststepError(
                f"the model gives outputs of the form {list(found.shape)}, not a probability for each of "
                f"{len(self.card.classes)} classes"
            )
        if not np.isfinite(found).all():
            raise FirststepError("the model's probabilities are not finite: it is damaged")
        return found


@contextmanager
def _one_thread() -> Iterator[None]:
    """One image keeps one core busy. Threads that wait for each other after every small layer cost more than
    they bring, and much more where another program has one of the cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def deployed(classifier: ImageClassifier, card: ModelCard) -> DeployedModel:
    """A classifier in memory, to be asked as if it had been read from a file.

    Examples:
        >>> from firststep.deployment import deployed, make_deployable
        >>> model = deployed(*make_deployable(adapted, trained.preprocessing))
        >>> model.card.classes
        ['a', 'b', 'c', 'd', 'e']
    """
    return DeployedModel(card, _torch_runner(classifier.eval()))


def load_deployed(
    path: str | Path, *, device: str = "cpu", ending: str | None = None, name: str | None = None
) -> DeployedModel:
    """The classifier in a folder of ``firststep adapt`` or in a file that it exported.

    A .pt2 or .onnx file is a program: load only those that you trust.

    Args:
        path: the folder or file.
        device: where to compute; .pt2 and .onnx files run on the CPU.
        ending: the format, where the name does not say it.
        name: what an error calls it.

    Examples:
        >>> from firststep.deployment import load_deployed, make_deployable, save_adapted
        >>> config = run.config.to_json()
        >>> made = make_deployable(adapted, trained.preprocessing, config=config)
        >>> path = save_adapted(Path("adapted"), *made)
        >>> load_deployed("adapted").card.classes
        ['a', 'b', 'c', 'd', 'e']
    """
    path = Path(path)
    if path.is_dir():
        if not (path / _ADAPTED).is_file():
            raise FirststepError(f"{path} is not a folder of `firststep adapt`: it has no {_ADAPTED}")
        path = path / _ADAPTED
    kind = (ending or path.suffix).lower()
    readers = {".safetensors": _safetensors, ".pt2": _pt2, ".onnx": _onnx}
    if kind not in readers:
        raise FirststepError(
            f"{path} is not a model: expected a folder of `firststep adapt`, or a file that ends in "
            f"{', '.join(readers)}"
        )
    on = choose_device(device)
    if kind != ".safetensors" and on.type != "cpu":
        raise FirststepError(f"`device={device}`: {path} runs on the CPU; leave it out")
    return readers[kind](path, name or str(path), on)


def require_onnxruntime() -> None:
    with extra("onnx", "an ONNX file"):
        import onnxruntime  # noqa: F401


def _safetensors(path: Path, name: str, device: torch.device) -> DeployedModel:
    read_bytes(path)  # refuses what is no regular file
    try:
        with safe_open(path, framework="pt") as file:
            card = read_card((file.metadata() or {}).get(KEY), name)
            weights = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError, ValueError) as error:
        raise FirststepError(f"{name} is damaged: {error}") from None
    config = TrainConfig.from_json(card.config, name)
    meta = build_meta_learner(config, card.preprocessing, device=torch.device("cpu"), weights_follow=True)
    network = blank_network(meta, len(card.classes), unit_features=card.classifier != STEPS)
    _fill(network, weights, name)
    classifier = ImageClassifier(network, card.preprocessing, card.temperature or 1.0)
    return deployed(classifier.to(device), card)


def _fill(network: nn.Module, weights: dict[str, torch.Tensor], name: str) -> None:
    wanted = network.state_dict()
    for key in sorted({*wanted, *weights}):
        if key not in weights or key not in wanted:
            what = "is missing" if key in wanted else "is not part of it"
            raise FirststepError(f"{name} does not fit the network of its configuration: {key} {what}")
        if weights[key].shape != wanted[key].shape:
            raise FirststepError(
                f"{name} does not fit the network of its configuration: {key} has the shape "
                f"{list(weights[key].shape)}, not {list(wanted[key].shape)}"
            )
    network.load_state_dict(weights)


def _pt2(path: Path, name: str, device: torch.device) -> DeployedModel:
    about = {KEY: ""}
    content = read_bytes(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = torch.export.load(io.BytesIO(content), extra_files=about).module()
    except Exception as error:  # of whatever kind: the reader expects a whole file
        raise FirststepError(f"{name} is damaged or not a .pt2 file ({_first_line(error)})") from None
    return DeployedModel(read_card(about[KEY], name), _guarded(_torch_runner(module), name))


def _onnx(path: Path, name: str, device: torch.device) -> DeployedModel:
    require_onnxruntime()
    import onnxruntime

    content = read_bytes(path)
    onnxruntime.set_default_logger_severity(4)  # it prints what it raises, too
    try:
        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        about = session.get_modelmeta().custom_metadata_map.get(KEY)
    except Exception as error:  # its own kinds, which it does not export
        raise FirststepError(f"{name} is damaged or not an .onnx file ({_first_line(error)})") from None

    def run(pixels: np.ndarray) -> np.ndarray:
        found = session.run(None, {session.get_inputs()[0].name: pixels})[0]
        return np.asarray(found)

    return DeployedModel(read_card(about, name), _guarded(run, name))


def _torch_runner(module: nn.Module) -> Callable[[np.ndarray], np.ndarray]:
    device = next((value.device for value in module.state_dict().values()), torch.device("cpu"))

    @torch.no_grad()
    def run(pixels: np.ndarray) -> np.ndarray:
        found: np.ndarray = module(torch.from_numpy(pixels).to(device)).cpu().numpy()
        return found

    return run


def _guarded(run: Callable[[np.ndarray], np.ndarray], name: str) -> Callable[[np.ndarray], np.ndarray]:
    """A program from a file: what it takes may not be what its card says."""

    def guarded(pixels: np.ndarray) -> np.ndarray:
        try:
            return run(pixels)
        except Exception as error:
            raise FirststepError(f"{name} does not take such images ({_first_line(error)})") from None

    return guarded


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
