"""All benchmarks of speed and memory, written to benchmarks/results.md as they come.

    make bench                                     # everything: most of an hour on two idle cores
    python benchmarks/run.py --go-on               # what a run that was cut short has not measured
    python benchmarks/run.py --only "28 px"        # the settings whose name contains this
    python benchmarks/run.py --go-on --rest profile   # after them, this alone; other parts stay

Run it on an idle machine. Results are ratios within one run; the absolute times are this machine's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import meta_gradient
from contenders import FREED_KEPT
from meta_gradient import HERE, SETTINGS, Measured, Setting
from over_the_floor import CASES
from record import Record, code_version

INTRODUCTION = """# Speed and memory: results

Written by `make bench`, in several runs (`--go-on`) if one was cut short. {machine}

5-way 5-shot, 16 queries a class, one task, float32. A meta-gradient is exact, through all inner steps, of all
parameters. *First call* includes compiling where there is any: cold the first time a network is met in this
file, from the compiler's cache after that. *Peak* is the process's largest resident memory, Python, PyTorch
and what the compiler does in the process included; *after the first call* is without that.
Contenders take turns; in its turn each is called twice and the second call counts, unless a section says
that it was one call.
*Floor*: the convolutions alone (nine forward passes' worth an inner step, three of
the query set) at the speed that the network's largest convolution reaches by itself with the library's
routine; *at each convolution's own speed*: every one at the best that it reaches by itself, by the library's
routines or by ours, which take fewer multiplications (`benchmarks/roofline.py`). Those of a setting were
measured once, before its contenders, and the machine is shared: *Over the floor* below takes floor and
engine in turns, and targets go by that.
*Freed memory kept*: the C library was told to, and large pages were asked for, as `firststep train` does
(`allocator.py`).
Rows with a plus sign add the conditioning loss on that parameter subset; *eager* is without compiler.
"""


# Subsets that targets are about, besides no conditioning
PROFILED_TOO = (("Conv4-32, 28 px", "all"), ("Conv4-64, 32 px", "emb"))


def machine() -> str:
    names = [line for line in _text("/proc/cpuinfo").splitlines() if line.startswith("model name")]
    model = names[0].partition(":")[2].strip() if names else platform.processor()
    return (
        f"{os.cpu_count()} logical cores of {model} ({torch.backends.cpu.get_cpu_capability()}), "
        f"{platform.system()}, Python {platform.python_version()}, torch {torch.__version__}, "
        f"{torch.get_num_threads()} threads."
    )


def _text(path: str) -> str:
    return Path(path).read_text() if Path(path).is_file() else ""


def script(name: str, *arguments: str) -> str:
    """Run another benchmark in its own process; return what it prints."""
    command = [sys.executable, "-W", "ignore", str(HERE / name), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def one_setting(setting: Setting) -> tuple[str, Measured]:
    floors = json.loads(script("roofline.py", setting.network, str(setting.steps)))
    name, speed = f"{setting.network}, K = {setting.steps}", floors["operations a second"] / 1e9
    print(f"{name}: floor {floors['']:.3g} s at {speed:.0f} GFLOPS", flush=True)
    entries, agree = meta_gradient.measure(setting)
    section = meta_gradient.table(setting, entries, agree, floors)
    return section, meta_gradient.summary(setting, entries, floors)


def where_the_time_goes() -> str:
    """Profile the compiled engine, to explain missed targets."""
    text = (
        "\n## Where the time goes\n\nOne meta-gradient of firststep, K = 5, by torch's profiler, in ms; "
        f"with all on one thread. Code of commit {code_version()}.\n"
    )
    plain = sorted({setting.network for setting in SETTINGS} - {"ResNet18, 84 px"})
    for name, *subset in (*((network,) for network in plain), *PROFILED_TOO):
        parts = json.loads(script("time_shares.py", name, "5", *subset).splitlines()[-1])
        whole = sum(parts.values())
        lines = [f"| {part} | {ms:.0f} | {100 * ms / whole:.0f} % |" for part, ms in parts.items()]
        text += "\n".join(
            ["", f"| {' + '.join([name, *subset])} | ms | share |", "|---|---|---|", *lines, ""]
        )
    return text


def convolutions_alone() -> str:
    """Measure each convolution alone: the parts of the floor."""
    text = (
        "\n## Each convolution alone\n\nOf the support set, freed memory kept, in GFLOPS, counted as sums of "
        "products; *ours*: by what compiled graphs take for it, our own routines (`metagradient/compiler`) "
        "or, where they have none, the library's.\n"
    )
    for network in sorted({setting.network for setting in SETTINGS}):
        text += "\n" + script("convolutions.py", network)
    return text


def others() -> str:
    gram = json.loads(script("deep_gram.py"))
    episodes = json.loads(script("evaluation_throughput.py"))
    starts = json.loads(script("start_up.py"))
    return (
        "\n## The Gram matrix of all 11 million parameters of ResNet18\n\n25 images of 84 px, within "
        f"{gram['memory']} MiB for J's columns and as much for its rows' cotangents: {gram['gram']:.1f} s, "
        f"with its gradient {gram['with gradient']:.1f} s, at a peak "
        f"{gram['peak above one backward pass']:.0f} MB above "
        f"the {gram['one backward pass']:.0f} MB of the process after one backward pass.\n"
        "\n## Testing\n\nEpisodes a second with all metrics after 0 to 5 steps; wanted are 3 times the "
        "loop's.\n\n"
        "| | firststep | one task after the other | times |\n|---|---|---|---|\n"
        + "".join(
            f"| {network} | {ours:.2f} | {loop:.2f} | {ours / loop:.2f} |\n"
            for network, (ours, loop) in ((name, found.values()) for name, found in episodes.items())
        )
        + "\n## Start\n\nSeconds; wanted are an import within 1.2 times torch's (medians), "
        "help within half a second, a compiled start of 45 s cold and 5 s warm: "
        f"{', '.join(f'`{name}` {value:.2f}' for name, value in starts.items())}.\n"
        "\n## Data\n\n```\n" + script("data_throughput.py").rstrip() + "\n```\n"
    )


def over_the_floor(record: Record) -> str:
    """Measure floor and engine in turns, because the machine's speed changes by the minute."""
    text = (
        "\n## Over the floor\n\nTime over the floor, both in turns, K = 5, freed memory kept where it says "
        f"so; code of commit {code_version()}.\n\n"
        "| | median | least to most | largest convolution, GFLOPS |\n|---|---|---|---|\n"
    )
    for network, contender, kept in CASES:
        case = f"{network}, {contender}{FREED_KEPT if kept else ''}"
        found = json.loads(script("over_the_floor.py", network, contender, kept).splitlines()[-1])
        record.over_the_floor[case] = found
        text += (
            f"| {case} | {found['median']:.2f} | {found['least']:.2f} to {found['most']:.2f} "
            f"| {found['speed']:.0f} |\n"
        )
        print(f"{case}: {found['median']:.2f} times the floor", flush=True)
    return text


FLOOR = "floor"
REST = {"profile": where_the_time_goes, "convolutions": convolutions_alone, "others": others}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="settings whose name contains this")
    parser.add_argument(
        "--rest",
        nargs="+",
        choices=[FLOOR, *REST],
        metavar="PART",
        help=f"no settings, only of {', '.join([FLOOR, *REST])}",
    )
    parser.add_argument("--out", type=Path, default=HERE / "results.md")
    parser.add_argument("--go-on", action="store_true", help="measure only what --out lacks")
    parser.add_argument(
        "--compiled", type=Path, metavar="FOLDER", help="cache of compiled code from an interrupted run"
    )
    options = parser.parse_args()
    wanted = [one for one in SETTINGS if options.only in f"{one.network}, K = {one.steps}"]
    if not wanted:
        raise SystemExit(
            f"no setting contains {options.only!r}; there are {sorted({s.network for s in SETTINGS})}"
        )
    record = Record(options.out, INTRODUCTION.format(machine=machine()), go_on=options.go_on)
    with tempfile.TemporaryDirectory() as empty:
        # What is compiled, by default nothing: so that the first calls are cold.
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(options.compiled or empty)
        for setting in () if options.rest else wanted:
            if setting not in record:
                record.add(setting, *one_setting(setting))
        if options.rest or not (options.only or record.rest):
            for part in options.rest or [FLOOR, *REST]:
                record.rest[part] = over_the_floor(record) if part == FLOOR else REST[part]()
                record.write()
    record.write()


if __name__ == "__main__":
    main()
