"""Read an adapted or exported classifier: image pixels in, probabilities out."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.export.passes import move_to_device_pass

from firststep.deployment.card import KEY, ModelCard, read_card
from firststep.deployment.image_classifier import ImageClassifier
from firststep.deployment.saved import load_classifier, weights_in
from firststep.errors import FirststepError
from firststep.training import choose_device
from firststep.utils import available_cores, read_bytes
from firststep.utils.extras import extra


@dataclass(frozen=True)
class Answers:
    """The outputs for a batch of images.

    Examples:
        >>> from firststep.deployment import deployed, make_deployable
        >>> model = deployed(*make_deployable(adapted, trained.preprocessing))
        >>> model.answers(np.zeros((3, 16, 16, 1), dtype=np.uint8)).probabilities.shape
        (3, 5)
    """

    probabilities: np.ndarray
    """[n, classes]"""
    none: np.ndarray | None = None
    """Score of "none of these classes", 0 to 1, [n]; None where it is not computed."""

    @staticmethod
    def joined(parts: Sequence[Answers], classes: int) -> Answers:
        probabilities = [np.zeros((0, classes), dtype=np.float32), *(part.probabilities for part in parts)]
        scores = [part.none for part in parts if part.none is not None]
        return Answers(np.concatenate(probabilities), np.concatenate(scores) if scores else None)


@dataclass(frozen=True)
class DeployedModel:
    """A classifier read from a file: pixels in, probabilities out.

    Examples:
        >>> from firststep.deployment import deployed, make_deployable
        >>> model = deployed(*make_deployable(adapted, trained.preprocessing))
        >>> model.batch(np.zeros((3, 16, 16, 1), dtype=np.uint8)).shape
        (3, 5)
    """

    card: ModelCard
    run: Callable[[np.ndarray], tuple[np.ndarray, ...]]
    """A batch, uint8 [n, H, W, C] → probabilities [n, classes]"""

    def probabilities(
        self, pixels: np.ndarray, progress: Callable[[str, int, int], None] | None = None
    ) -> np.ndarray:
        """Return the probabilities [n, classes] of images in the form of ``card.preprocessing``, uint8 [n, H,
        W, C].

        Images are classified one by one, because the last digits depend on the batch size.
        """
        return self.answers(pixels, progress).probabilities

    def answers(self, pixels: np.ndarray, progress: Callable[[str, int, int], None] | None = None) -> Answers:
        """Return the probabilities and, where it is computed, the score of "none of these classes"."""

        def one(number: int) -> Answers:
            return self.batch_answers(pixels[number : number + 1])

        found: list[Answers] = []
        # One thread per image and one image per core: the results stay the same.
        with one_thread(), ThreadPoolExecutor(available_cores()) as pool:
            for answers in pool.map(one, range(len(pixels))):
                found.append(answers)
                if progress is not None:
                    progress("classifying", len(found), len(pixels))
        return Answers.joined(found, len(self.card.classes))

    def batch(self, pixels: np.ndarray) -> np.ndarray:
        """Return the probabilities of images that are classified as one batch."""
        return self.batch_answers(pixels).probabilities

    def batch_answers(self, pixels: np.ndarray) -> Answers:
        """Return the outputs of images that are classified as one batch."""
        outputs = self.run(np.array(pixels, order="C"))  # a copy: torch warns of read-only arrays
        found, limit = outputs[0], self.card.none_limit
        if found.shape != (len(pixels), len(self.card.classes)):
            raise FirststepError(
                f"the model gives outputs of the form {list(found.shape)}, not a probability for each of "
                f"{len(self.card.classes)} classes"
            )
        if limit is not None and (len(outputs) < 2 or outputs[1].shape != (len(pixels),)):
            raise FirststepError('the model does not give one score of "none of these" per image')
        if not all(np.isfinite(output).all() for output in outputs):
            raise FirststepError("the model's probabilities are not finite: it is damaged")
        return Answers(found, None if limit is None else outputs[1])


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one torch thread: one image keeps only one core busy. Synchronising threads after every small
    layer costs more than it gains, most of all if another program uses one of the cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def deployed(classifier: ImageClassifier, card: ModelCard) -> DeployedModel:
    """Wrap a classifier in memory like one read from a file.

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
    """Load a classifier from a folder of ``firststep adapt`` or from an exported file.

    A .pt2 or .onnx file is a program: load only those that you trust.

    Args:
        path: the folder or file.
        device: device, such as cpu or cuda; an .onnx file needs ONNX Runtime's provider for it.
        ending: the format, if the name does not show it.
        name: the name of the file in errors.

    Examples:
        >>> from firststep.deployment import load_deployed, make_deployable, save_adapted
        >>> config = run.config.to_json()
        >>> made = make_deployable(adapted, trained.preprocessing, config=config)
        >>> path = save_adapted(Path("adapted"), *made)
        >>> load_deployed("adapted").card.classes
        ['a', 'b', 'c', 'd', 'e']
    """
    path = weights_in(Path(path))
    kind = (ending or path.suffix).lower()
    readers = {".safetensors": _safetensors, ".pt2": _pt2, ".onnx": _onnx}
    if kind not in readers:
        raise FirststepError(
            f"{path} is not a model: expected a folder of `firststep adapt`, or a file that ends in "
            f"{', '.join(readers)}"
        )
    return readers[kind](path, name or str(path), device)


def require_onnxruntime() -> None:
    with extra("onnx", "an ONNX file"):
        import onnxruntime  # noqa: F401


def _safetensors(path: Path, name: str, device: str) -> DeployedModel:
    classifier, card = load_classifier(path, name)
    return deployed(classifier.to(choose_device(device)), card)


def _pt2(path: Path, name: str, device: str) -> DeployedModel:
    on = choose_device(device)
    about = {KEY: ""}
    content = read_bytes(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.load(io.BytesIO(content), extra_files=about)
            # The graph names the device of its constants too, so `.to` would not be enough.
            module = (program if on.type == "cpu" else move_to_device_pass(program, on)).module()
    except Exception as error:  # the reader raises errors of many classes on a damaged file
        raise FirststepError(f"{name} is damaged or not a .pt2 file ({_first_line(error)})") from None
    return DeployedModel(read_card(about[KEY], name), _guarded(_torch_runner(module), name))


def _onnx(path: Path, name: str, device: str) -> DeployedModel:
    require_onnxruntime()
    import onnxruntime

    providers = _providers(device)
    content = read_bytes(path)
    onnxruntime.set_default_logger_severity(4)  # it would also print what it raises
    try:
        session = onnxruntime.InferenceSession(content, providers=providers)
        about = session.get_modelmeta().custom_metadata_map.get(KEY)
    except Exception as error:  # onnxruntime does not export its exception classes
        raise FirststepError(f"{name} is damaged or not an .onnx file ({_first_line(error)})") from None

    def run(pixels: np.ndarray) -> tuple[np.ndarray, ...]:
        found = session.run(None, {session.get_inputs()[0].name: pixels})
        return tuple(np.asarray(output) for output in found)

    return DeployedModel(read_card(about, name), _guarded(run, name))


def _providers(device: str) -> list[Any]:
    """Return ONNX Runtime's providers for a device, in order of preference."""
    import onnxruntime

    cpu, cuda = "CPUExecutionProvider", "CUDAExecutionProvider"
    here = onnxruntime.get_available_providers()
    kind, _, number = device.partition(":")
    if kind == "cpu" or (kind == "auto" and cuda not in here):
        return [cpu]
    if kind not in ("auto", "cuda") or not (number or "0").isdecimal():
        raise FirststepError(f"{device} is not a device for .onnx files; they run on cpu, cuda or auto")
    if cuda not in here:
        raise FirststepError(
            f"device {device}: this ONNX Runtime has no {cuda}; pip install onnxruntime-gpu, or use cpu"
        )
    return [(cuda, {"device_id": int(number or 0)}), cpu]


def _torch_runner(module: nn.Module) -> Callable[[np.ndarray], tuple[np.ndarray, ...]]:
    device = next((value.device for value in module.state_dict().values()), torch.device("cpu"))

    @torch.no_grad()
    def run(pixels: np.ndarray) -> tuple[np.ndarray, ...]:
        found = module(torch.from_numpy(pixels).to(device))
        return tuple(output.cpu().numpy() for output in (found if isinstance(found, tuple) else (found,)))

    return run


def _guarded(
    run: Callable[[np.ndarray], tuple[np.ndarray, ...]], name: str
) -> Callable[[np.ndarray], tuple[np.ndarray, ...]]:
    """Wrap a program from a file, whose inputs may differ from what its card says."""

    def guarded(pixels: np.ndarray) -> tuple[np.ndarray, ...]:
        try:
            return run(pixels)
        except Exception as error:
            raise FirststepError(f"{name} does not take such images ({_first_line(error)})") from None

    return guarded


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
