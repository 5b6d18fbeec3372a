"""Modules of a user's own, which may raise, leave, return or register anything."""

from __future__ import annotations

from random import Random

from campaigns.fuzz.case import Case, Sandbox
from campaigns.stock import TINY

ERRORS = r"""
ValueError('two\nlines')
RuntimeError()
KeyError('x')
OSError(5, 'disk')
SystemExit(0)
SystemExit('bye')
SystemExit(7)
KeyboardInterrupt()
GeneratorExit()
MemoryError()
BaseException('base')
RecursionError()
ImportError('i')
type('Odd', (Exception,), {'__str__': lambda self: 1 / 0})()
UnicodeDecodeError('utf-8', b'\xff', 0, 1, 'x')
Warning('w')
BrokenPipeError()
""".strip().splitlines()
NETWORK = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.fc = nn.Linear(12, 5)
    def forward(self, images):
        logits = self.fc(self.body(images))
        {forward}
def net():
    {factory}
"""
GOOD = {"forward": "return logits", "factory": "return Net()"}
FORWARD = """
return None
return 3
return images
return logits.half()
return self.body(images)
return logits * float('nan')
return logits / 0
return (1, 2)
return logits.detach()
return logits[:1]
return {}
return logits.sum()
return logits * 0
import os; os.kill(os.getpid(), 2)
return logits.to(torch.complex64)
print('x' * 100000); return logits
""".strip().splitlines()
FACTORY = """
return None
return 3
return Net
return nn.Identity()
return nn.Linear(4, 5)
return nn.ModuleList()
return Net().half()
return Net().double()
return Net().to('meta')
return net()
return Net().requires_grad_(False)
return torch.jit.script(nn.Sequential(nn.Flatten(), nn.Linear(768, 5)))
return nn.Sequential(nn.Flatten(), nn.LazyLinear(5))
return nn.Sequential(nn.Flatten(), nn.Linear(768, 1))
return nn.Sequential(nn.Flatten(), nn.Linear(768, 0))
""".strip().splitlines()
SOURCES = (
    *(
        "def",
        "\0",
        "x = (" * 500,
        "import mine",
        "from mine import net",
        "net = None",
        "net = 5",
        "",
        "\udcff",
    ),
    *("import sys; sys.modules['mine'] = None", "import sys; del sys.modules['mine']"),
    "__getattr__ = lambda name: 1 / 0",
)
NAMES = """
mine: :net : mine:net:x mine:no mine.py:net a..b:net .mine:net os:path mine.net:x mine:net.x [red]:x é:é
/tmp:x C:\\mine torch.nn:Linear torch.nn:Identity builtins:exit builtins:input
"""
REGISTERING = """
import torch
from torch import nn
from firststep import METHODS, Method, Rule, maml, BACKBONES, Backbone, CONDITIONING_LOSSES
from firststep.evaluation import METRICS, Metric
from firststep.data import DatasetInfo, Layout, Source, ArrayImages, register_dataset

def fail(*args, **kwargs):
    raise {error}

def nothing(*args, **kwargs):
    return {{}}

def method(make):
    METHODS.register("own", make)

def rule(init, update):
    method(lambda rate, steps: Method(rule=Rule(name="own", init=init, update=update)))

def conditioning(function):
    CONDITIONING_LOSSES.register("own", function)

def metric(compute):
    METRICS.register("own", Metric(title="own", compute=compute))

def backbone(build):
    BACKBONES.register("own", Backbone(
        title="own", build=build, features=fail, has_filters=False, image_size=16, smallest_image=1))

def data(parts, read):
    layouts = (Layout("x", parts, read),)
    register_dataset(DatasetInfo(name="own", about="x", image_size=16, layouts=layouts))

"""
REGISTERED = """
method(fail)
method(None)
METHODS.register('maml', fail)
METHODS.register(5, fail)
METHODS.register('', fail)
method(lambda rate, steps: None)
method(lambda rate, steps: Method(rule=None))
method(lambda rate, steps: Method(rule=maml(rate=float('nan'))))
method(lambda rate, steps: Method(rule=maml(rate=1e30)))
rule(fail, fail)
rule(nothing, fail)
rule(nothing, nothing)
rule(nothing, lambda *args, **kwargs: None)
rule(nothing, lambda grads, *rest, **more: {name: 'x' for name in grads})
rule(lambda *args: {'a': 3}, nothing)
conditioning(fail)
conditioning(lambda gram: None)
conditioning(lambda gram: 3.0)
conditioning(lambda gram: gram)
conditioning(lambda gram: gram.sum((-1, -2)) * float('nan'))
metric(fail)
metric(lambda state: None)
metric(lambda state: torch.zeros(3))
metric(lambda state: float('nan'))
backbone(fail)
backbone(lambda *args, **kwargs: None)
backbone(lambda *args, **kwargs: nn.Identity())
data(fail, fail)
data(lambda root: [root], fail)
data(lambda root: [root], lambda root: None)
data(lambda root: 5, fail)
""".strip().splitlines()
"""Lines after ``REGISTERING``; ``fail`` raises an error of the case's choice."""
USED_BY = {
    **dict.fromkeys(("method", "rule"), ("--method", "own")),
    **{name: (f"--{name}", "own") for name in ("conditioning", "backbone")},
    "data": ("--data", "own", "--data-path", "."),
}
"""First word of a line: the flags of a training that uses what it registers."""


def user_modules(rng: Random, sandbox: Sandbox) -> Case:
    return _registered(rng, sandbox) if rng.random() < 0.4 else _diagnosed(rng, sandbox)


def _diagnosed(rng: Random, sandbox: Sandbox) -> Case:
    """Diagnose a network whose module, factory or forward pass is wrong."""
    name, parts, error = "mine:net", dict(GOOD), rng.choice(ERRORS)
    what = rng.choice(("import", "raise", "raise", "forward", "factory", "source", "name", "good"))
    if what == "raise":
        parts[rng.choice(list(GOOD))] = f"raise {error}"
    elif what in GOOD:
        parts[what] = rng.choice(FORWARD if what == "forward" else FACTORY)
    source = NETWORK.format(**parts)
    if what in ("import", "source"):
        source = f"raise {error}" if what == "import" else rng.choice(SOURCES)
    elif what == "name":
        name = rng.choice(NAMES.split())
    data = ["--data", "folder", "--data-path", str(sandbox.stock.pictures), "--image-size", "16"]
    flags = ["--tasks", "1", "--shots", "2", "--subsets", rng.choice(("cls", "all"))]
    flags += rng.choice(([], ["--classifier", "fc"]))
    shown = source[:40] if what in ("import", "source") else "; ".join(parts.values())
    return _case(f"diagnose {name}: {shown!r}", ["diagnose", name, *data, *flags], source, sandbox)


def _registered(rng: Random, sandbox: Sandbox) -> Case:
    """Train with a part that a module registers, if the module gets that far."""
    line, error = rng.choice(REGISTERED), rng.choice(ERRORS)
    source, flags = REGISTERING.format(error=error) + line, USED_BY.get(line.partition("(")[0], ())
    if rng.random() < 0.15:
        source = line = rng.choice((f"raise {error}", *SOURCES))
        flags = ()
    data = [] if "--data" in flags else sandbox.stock.data_flags
    tiny = [*TINY, "--updates", "1", "--validate-every", "1"]
    arguments = ["train", "demo", *tiny, *data, *flags, "--out", "new"]
    case = _case(f"--import mine: {line[:90]!r}, fail raises {error}", arguments, source, sandbox)
    if rng.random() < 0.3:
        case.environment = {"FIRSTSTEP_IMPORT": "mine"}
    else:
        case.arguments = ["--import", "mine", *arguments]
    return case


def _case(what: str, arguments: list[str], source: str, sandbox: Sandbox) -> Case:
    (sandbox.work / "mine.py").write_bytes(source.encode("utf-8", "surrogateescape"))
    may_interrupt = "KeyboardInterrupt" in source or "os.kill" in source
    return Case(
        what=what,
        arguments=arguments,
        writes=("spectrum.png", "new", ".firststep-cache"),
        statuses=(0, 2, 130) if may_interrupt else (0, 2),
    )
