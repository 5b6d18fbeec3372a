"""A classifier as one web page: model, ONNX Runtime Web and script in a file that works offline."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path

from firststep.deployment.card import ModelCard
from firststep.deployment.web_runtime import WebRuntime

_PARTS = Path(__file__).parent / "web"


def web_page(onnx: bytes, card: ModelCard, runtime: WebRuntime) -> bytes:
    """Return the page that runs an ONNX file; the training configuration stays out of it."""
    known = {name: value for name, value in card.values().items() if name not in ("config", "run")}
    filled = {
        # No end tag and no comment may begin within a script.
        "CARD": json.dumps(known, ensure_ascii=True).replace("<", "\\u003c"),
        "RUNTIME": _packed(runtime.script),
        "RUNTIME_NAME": runtime.name,
        "WASM": _packed(runtime.wasm),
        "MODEL": _packed(onnx),
        "SCRIPT": "\n".join((_PARTS / name).read_text("utf-8") for name in ("pixels.js", "classify.js")),
    }
    template = (_PARTS / "page.html").read_text("utf-8")
    return re.sub("@([A-Z_]+)@", lambda found: filled[found[1]], template).encode()


def _packed(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, 6, mtime=0)).decode("ascii")
