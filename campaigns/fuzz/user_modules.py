"""Modules of a user's own, which may raise, leave, return or register anything."""

from __future__ import annotations

from random import Random

from campaigns.fuzz.case import Case, Sandbox
from campaigns.fuzz.registered import HEAD, LINES
from campaigns.stock import TINY

ERRORS = (
    *(
        "ValueError('two\\nlines')",
        "RuntimeError()",
        "KeyError('x')",
        "OSError(5, 'disk')",
        "SystemExit(0)",
        "SystemExit('bye')",
    ),
    *(
        "SystemExit(7)",
        "KeyboardInterrupt()",
        "AssertionError()",
        "StopIteration()",
        "GeneratorExit()",
        "MemoryError()",
    ),
    *(
        "BaseException('base')",
        "RecursionError()",
        "NotImplementedError()",
        "AttributeError('a')",
        "ImportError('i')",
    ),
    *(
        "type('Odd', (Exception,), {'__str__': lambda self: 1 / 0})()",
        "UnicodeDecodeError('utf-8', b'\\xff', 0, 1, 'x')",
    ),
    *(
        "Warning('w')",
        "TypeError('t')",
        "IndexError(1)",
        "ZeroDivisionError()",
        "EOFError()",
        "BrokenPipeError()",
    ),
)
NETWORK = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.fc = nn.Linear(12, 5)
    def forward(self, images):
        {forward}
def net():
    {factory}
"""
FORWARD = (
    *(
        "return None",
        "return 3",
        "return images",
        "return self.fc(self.body(images)).half()",
        "return self.body(images)",
    ),
    *(
        "return self.fc(self.body(images)) * float('nan')",
        "return self.fc(self.body(images)) / 0",
        "return (1, 2)",
    ),
    *("return self.fc(self.body(images)).detach()", "return self.fc(self.body(images))[:1]", "return {}"),
    *(
        "return self.fc(self.body(images)).sum()",
        "return self.fc(self.body(images)) * 0",
        "import os; os.kill(os.getpid(), 2)",
    ),
    *(
        "return self.fc(self.body(images)).to(torch.complex64)",
        "print('x' * 100000); return self.fc(self.body(images))",
    ),
)
GOOD = "return self.fc(self.body(images))"
FACTORY = (
    *(
        "return None",
        "return 3",
        "return Net",
        "return nn.Identity()",
        "return nn.Linear(4, 5)",
        "return nn.ModuleList()",
    ),
    *(
        "return Net().half()",
        "return Net().double()",
        "return Net().to('meta')",
        "return net()",
        "return Net().requires_grad_(False)",
    ),
    *(
        "return torch.jit.script(nn.Sequential(nn.Flatten(), nn.Linear(768, 5)))",
        "return nn.Sequential(nn.Flatten(), nn.LazyLinear(5))",
    ),
    *(
        "return nn.Sequential(nn.Flatten(), nn.Linear(768, 1))",
        "return nn.Sequential(nn.Flatten(), nn.Linear(768, 0))",
    ),
)
SOURCES = (
    *(
        "def",
        "\0",
        "x = (" * 500,
        "import mine",
        "from mine import net",
        "raise ImportError",
        "net = None",
        "net = 5",
    ),
    *(
        "import sys; sys.modules['mine'] = None",
        "import sys; del sys.modules['mine']",
        "__getattr__ = lambda name: 1 / 0",
        "",
    ),
)
NAMES: tuple[str, ...] = (
    "mine:",
    ":net",
    ":",
    "mine:net:x",
    "mine:no",
    "mine.py:net",
    "a..b:net",
    ".mine:net",
    "os:path",
    "mine.net:x",
    "mine:net.x",
)
NAMES += (
    "[red]:x",
    "é:é",
    "mine :net",
    "/tmp:x",
    "C:\\mine",
    "torch.nn:Linear",
    "torch.nn:Identity",
    "builtins:exit",
    "builtins:input",
)


def case(rng: Random, sandbox: Sandbox) -> Case:
    if rng.random() < 0.4:
        return _registered(rng, sandbox)
    source, where, words = _network(rng)
    data = ["--data", "folder", "--data-path", str(sandbox.stock.pictures), "--image-size", "16"]
    flags = [
        "--tasks",
        "1",
        "--shots",
        "2",
        "--subsets",
        rng.choice(("cls", "all")),
        *rng.choice(([], ["--classifier", "fc"])),
    ]
    (sandbox.work / "mine.py").write_bytes(source.encode("utf-8", "surrogatepass"))
    return Case(
        what=f"diagnose {where}: {words}",
        arguments=["diagnose", where, *data, *flags],
        writes=("spectrum.png",),
        statuses=(0, 2, 130) if "KeyboardInterrupt" in words or "os.kill" in words else (0, 2),
    )


def _network(rng: Random) -> tuple[str, str, str]:
    """Source of the module, the name to diagnose, and what is odd."""
    what = rng.choice(
        (
            "import",
            "factory raises",
            "forward raises",
            "forward",
            "factory",
            "source",
            "name",
            "bytes",
            "good",
        )
    )
    error = rng.choice(ERRORS)
    if what == "import":
        return f"raise {error}", "mine:net", f"import raises {error}"
    if what == "factory raises":
        return NETWORK.format(forward=GOOD, factory=f"raise {error}"), "mine:net", f"factory raises {error}"
    if what == "forward raises":
        return (
            NETWORK.format(forward=f"raise {error}", factory="return Net()"),
            "mine:net",
            f"forward raises {error}",
        )
    if what == "forward":
        forward = rng.choice(FORWARD)
        return NETWORK.format(forward=forward, factory="return Net()"), "mine:net", forward
    if what == "factory":
        factory = rng.choice(FACTORY)
        return NETWORK.format(forward=GOOD, factory=factory), "mine:net", factory
    if what == "source":
        source = rng.choice(SOURCES)
        return source, "mine:net", f"source {source[:40]!r}"
    good = NETWORK.format(forward=GOOD, factory="return Net()")
    if what == "bytes":
        return good + "\ud800", "mine:net", "source that is not UTF-8"
    return good, rng.choice(NAMES) if what == "name" else "mine:net", what


def _registered(rng: Random, sandbox: Sandbox) -> Case:
    """What is registered is used by a training, if the module gets that far."""
    line, flags = rng.choice(list(LINES.items()))
    error = rng.choice(ERRORS)
    source = HEAD.format(error=error) + line
    if rng.random() < 0.15:
        source = line = rng.choice((f"raise {error}", *SOURCES))
        flags = ()
    (sandbox.work / "mine.py").write_text(source)
    tiny = [*TINY, "--updates", "1", "--validate-every", "1"]
    data = [] if "--data" in flags else sandbox.stock.data_flags
    arguments = ["train", "demo", *tiny, *data, *flags, "--out", "new"]
    by_variable = rng.random() < 0.3
    return Case(
        what=f"--import mine: {line[:90]!r}, fail() raises {error}",
        arguments=arguments if by_variable else ["--import", "mine", *arguments],
        environment={"FIRSTSTEP_IMPORT": "mine"} if by_variable else {},
        writes=("new", ".firststep-cache"),
        statuses=(0, 2, 130) if "KeyboardInterrupt" in source else (0, 2),
    )
