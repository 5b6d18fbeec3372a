"""Write metrics.csv in the run's folder: a table for spreadsheets and pandas."""

from __future__ import annotations

import csv
from collections.abc import Mapping

from firststep.errors import FirststepError
from firststep.training.loggers.logger import LoggedRun, register_logger
from firststep.utils import read_bytes, write_text

COLUMNS = ("update", "metric", "step", "value")


@register_logger("csv")
class _Csv:
    """One number per line, because not every update logs the same metrics."""

    def __init__(self, run: LoggedRun) -> None:
        path = run.folder / "metrics.csv"
        kept = [",".join(COLUMNS)]
        if path.exists():
            lines = [line for line in read_bytes(path).decode().splitlines()[1:] if line.count(",") == 3]
            kept += [line for line in lines if _update(line, str(path)) <= run.start]
        write_text(path, "".join(f"{line}\n" for line in kept))
        self._file = open(path, "a", encoding="utf-8", newline="")  # noqa: SIM115 (closed in close)
        self._writer = csv.writer(self._file, lineterminator="\n")

    def write(self, update: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            metric, _, step = name.partition("/")
            self._writer.writerow((update, metric, step, value))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _update(line: str, where: str) -> int:
    try:
        return int(line.partition(",")[0])
    except ValueError:
        raise FirststepError(f"{where} is not a table of this logger: {line[:60]!r}; remove it") from None
