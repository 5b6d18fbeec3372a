"""Lists of images as csv, as different spreadsheets write them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from firststep.errors import FirststepError
from firststep.utils import read_bytes


def read_columns(path: Path, *columns: str) -> Iterator[list[str]]:
    """Yield the values of these columns line by line. The first line names the columns."""
    try:
        text = read_bytes(path).decode("utf-8-sig")  # spreadsheets write a byte order mark
    except UnicodeDecodeError as error:
        raise FirststepError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    if "\0" in text:
        raise FirststepError(f"{path} is damaged: it has a zero byte on line {_line(text)}")
    rows = csv.DictReader(io.StringIO(text, newline=""))
    try:
        if not set(columns) <= set(rows.fieldnames or ()):
            raise FirststepError(f"{path}: the first line must name the columns {','.join(columns)}")
        for row in rows:
            values = [row[column] for column in columns]
            if None in values or None in row:
                raise FirststepError(f"{path}: line {rows.line_num} has more or fewer columns than the first")
            yield values
    except csv.Error as error:
        raise FirststepError(f"{path}: line {rows.line_num + 1} cannot be read ({error})") from None


def _line(text: str) -> int:
    return text[: text.index("\0")].count("\n") + 1
