"""Read the folder of a result: its record and its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from firststep.errors import FirststepError
from firststep.paper.comparison_table import LINES
from firststep.paper.measurements import CELL, tidy
from firststep.paper.record import RECORD, ResultRecord, read_record_of

PAGE, NUMBERS, BY_SEED, FIGURE = "README.md", "numbers.csv", "by-seed.csv", "figure.png"
_NUMBERS = (*CELL, "backbone", "seeds", "gain_seeds", *(column for pair in LINES.values() for column in pair))


@dataclass(frozen=True, kw_only=True)
class SavedResult:
    """A result as it was written into its folder.

    Examples:
        >>> from firststep.paper import read_results, write_result
        >>> _ = write_result(result, Path("results"))
        >>> saved = read_results(Path("results"))[0]
        >>> saved.record == result.record, len(saved.cells) == len(result.cells)
        (True, True)
    """

    folder: Path
    record: ResultRecord
    cells: pd.DataFrame
    """The numbers (:func:`firststep.paper.comparison_table.beside_paper`)."""

    @property
    def figure(self) -> Path | None:
        """The result's figure, if it has one."""
        path = self.folder / FIGURE
        return path if path.is_file() else None


def read_results(out: Path) -> list[SavedResult]:
    """Read every result below a folder, in the order of the paths.

    Examples:
        >>> from firststep.paper import read_results, write_result
        >>> _ = write_result(result, Path("results"))
        >>> [saved.record.experiment for saved in read_results(Path("results"))]
        ['one-row']
    """
    return [read_result(path.parent) for path in sorted(out.rglob(RECORD))]


def read_result(folder: Path) -> SavedResult:
    """Read what :func:`firststep.paper.write_result` wrote into this folder."""
    record = read_record_of(folder)
    return SavedResult(folder=folder, record=record, cells=_read_numbers(folder / NUMBERS))


def _read_numbers(file: Path) -> pd.DataFrame:
    try:
        frame = pd.read_csv(file, comment="#", keep_default_na=False, na_values=[""])
        if absent := [name for name in dict.fromkeys(_NUMBERS) if name not in frame]:
            raise ValueError(f"column {absent[0]} is missing")
        return tidy(frame.to_dict("records"), list(frame.columns))
    except OSError as error:
        raise FirststepError(f"cannot read {file}: {error.strerror}") from None
    except (ValueError, TypeError) as error:
        raise FirststepError(f"{file} cannot be read as the numbers of a result: {error}") from None
