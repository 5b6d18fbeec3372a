"""Classifiers of texts: sentence features and a few-shot head, as a file, as ONNX, and read back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import Tensor, nn

from firststep.backbones import MOST_TOKENS, SENTENCE_FEATURES, SentenceEncoder, Tokenizer
from firststep.deployment.card import KEY
from firststep.deployment.export import TOLERANCE, quiet
from firststep.deployment.loading import Answers, one_thread
from firststep.deployment.saving import CARD, WEIGHTS
from firststep.errors import FirststepError
from firststep.evaluation._internal import FewShotHead, HeadForm
from firststep.utils import (
    check_format,
    make_folder,
    parse_json,
    read_bytes,
    replacing,
    to_record,
    write_json,
)

FORMAT = "firststep-text-classifier-1"
TEXT_ENDINGS = (".onnx", ".safetensors")
"""Formats of :func:`export_texts`, by the ending of the file."""
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class TextCard:
    """What a classifier of texts is."""

    classes: list[str]
    classifier: str
    """Name of the probe, or ``average``."""
    support_texts: int
    cross_validated_accuracy: float | None
    """Accuracy to expect; None where nothing could be held out."""
    accuracy_interval: tuple[float, float] | None
    head: HeadForm
    none_limit: float | None
    """Smallest score of a text that is none of the classes; None where there is no score."""
    encoder: str = "all-MiniLM-L6-v2"
    format: str = FORMAT

    def text(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=True)


class TextEncoder:
    """Texts → features, each text alone, so that its features depend on no other."""

    def __init__(self) -> None:
        self.tokens = Tokenizer()
        self.network = SentenceEncoder.pretrained()

    @torch.no_grad()
    def __call__(self, texts: Sequence[str], progress: Progress | None = None) -> Tensor:
        """Return features [n, 384]."""
        found = []
        with one_thread():
            for number, text in enumerate(texts, 1):
                tokens = torch.tensor([self.tokens(text)])
                found.append(self.network(tokens, torch.ones_like(tokens)))
                if progress is not None:
                    progress("reading texts", number, len(texts))
        return torch.cat(found)


@dataclass(frozen=True)
class TextClassifier:
    """A classifier of texts that was adapted or read from a file."""

    card: TextCard
    head: FewShotHead

    @torch.no_grad()
    def answers(self, features: Tensor) -> Answers:
        """Return the answers for texts with these features."""
        probabilities, none = _answers(self.head, features, self.card.none_limit is not None)
        return Answers(probabilities.numpy(), None if none is None else none.numpy())

    def save(self, folder: Path) -> Path:
        """Write the head, with its card inside and beside it; return the path of the weights."""
        make_folder(folder)
        path = folder / WEIGHTS
        self.write(path)
        write_json(folder / CARD, asdict(self.card))
        return path

    def write(self, path: Path) -> None:
        """Write the head to a safetensors file."""
        weights = {name: value.contiguous().clone() for name, value in self.head.state_dict().items()}
        with replacing(path) as temporary:
            temporary.write_bytes(serialise(weights, metadata={KEY: self.card.text()}))


def is_text_classifier(path: Path) -> bool:
    """Return whether a folder or safetensors file has a classifier of texts."""
    file = path / WEIGHTS if path.is_dir() else path
    if file.suffix.lower() != ".safetensors" or not file.is_file():
        return False
    try:
        with safe_open(file, framework="pt") as content:
            return f'"{FORMAT}"' in (content.metadata() or {}).get(KEY, "")
    except (SafetensorError, OSError):
        return False


def load_text_classifier(path: Path) -> TextClassifier:
    """Read a classifier of texts from a folder of ``firststep adapt`` or from a safetensors file."""
    file = path / WEIGHTS if path.is_dir() else path
    read_bytes(file)  # refuses what is no regular file
    try:
        with safe_open(file, framework="pt") as content:
            text = (content.metadata() or {}).get(KEY, "")
            weights = {key: content.get_tensor(key) for key in content.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError, ValueError) as error:
        raise FirststepError(f"{file} is damaged: {error}") from None
    values = parse_json(text, str(file))
    check_format(values, str(file), FORMAT)
    card = to_record(values, TextCard, str(file))
    head = card.head.build(SENTENCE_FEATURES, len(card.classes))
    try:
        head.load_state_dict(weights)
    except RuntimeError:
        raise FirststepError(
            f"{file} does not fit its card: its weights have other names or shapes"
        ) from None
    return TextClassifier(card, head.requires_grad_(False))


def export_texts(path: Path, classifier: TextClassifier, encode: TextEncoder, texts: Sequence[str]) -> None:
    """Write the head (.safetensors) or all from token numbers to answers (.onnx); keep it if it agrees.

    Args:
        path: its ending says the format.
        classifier: to be written.
        encode: gives the tokens and the network.
        texts: a few, on which the file must give the same probabilities.
    """
    if path.suffix.lower() == ".safetensors":
        classifier.write(path)
        return
    with replacing(path) as temporary:
        temporary.write_bytes(_onnx(classifier, encode))
        difference = max(_difference(temporary, classifier, encode, text) for text in texts)
        if not difference <= TOLERANCE:
            raise FirststepError(f"{path} was not kept: its probabilities differ by {difference:.1g}")


def _onnx(classifier: TextClassifier, encode: TextEncoder) -> bytes:
    whole = _Whole(encode.network, classifier).eval()
    example = torch.ones(2, 7, dtype=torch.long)
    sizes = {0: torch.export.Dim("texts", min=1), 1: torch.export.Dim("tokens", min=2, max=MOST_TOKENS)}
    names = ["probabilities", "none"] if whole.has_none else ["probabilities"]
    with quiet():
        exported = torch.onnx.export(
            whole,
            (example, example.clone()),  # one tensor given twice would be one input
            dynamo=True,
            verbose=False,
            dynamic_shapes={"tokens": sizes, "mask": sizes},
            input_names=["input_ids", "attention_mask"],
            output_names=names,
        )
        assert exported is not None
        exported.model.metadata_props[KEY] = classifier.card.text()
        content = exported.model_proto.SerializeToString()
    assert isinstance(content, bytes)
    return content


def _difference(file: Path, classifier: TextClassifier, encode: TextEncoder, text: str) -> float:
    import onnxruntime

    session = onnxruntime.InferenceSession(file.read_bytes(), providers=["CPUExecutionProvider"])
    tokens = np.array([encode.tokens(text)], dtype=np.int64)
    found = session.run(None, {"input_ids": tokens, "attention_mask": np.ones_like(tokens)})
    expected = classifier.answers(encode([text]))
    return float(np.abs(found[0] - expected.probabilities).max())


def _answers(head: FewShotHead, features: Tensor, has_none: bool) -> tuple[Tensor, Tensor | None]:
    outputs = head(features)
    return (outputs[:, :-1].exp(), outputs[:, -1]) if has_none else (outputs.exp(), None)


class _Whole(nn.Module):
    """Tokens and mask to probabilities and, if there is one, the score of "none of these"."""

    def __init__(self, encoder: SentenceEncoder, classifier: TextClassifier) -> None:
        super().__init__()
        self.encoder, self.head = encoder, classifier.head
        self.has_none = classifier.card.none_limit is not None

    def forward(self, tokens: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        probabilities, none = _answers(self.head, self.encoder(tokens, mask), self.has_none)
        return (probabilities,) if none is None else (probabilities, none)
