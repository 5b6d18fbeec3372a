"""JSON files as typed values; the error for a wrong or damaged file names the file and the field.

Every record that firststep keeps (``run.json``, ``metrics.jsonl``, evaluations, results, ``dataset.json``,
the state in a checkpoint) is a dataclass that is read only here. Values are never converted silently:
``2.5`` and ``true`` are not integers.
"""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any, TypeVar

from firststep.errors import FirststepError
from firststep.utils.extras import extra

Record = TypeVar("Record")


def read_record(path: Path, kind: type[Record]) -> Record:
    """Read the file as a ``kind``, usually a dataclass; the error names the file and the field."""
    return to_record(read_json(path), kind, str(path))


def to_record(value: Any, kind: type[Record], where: str) -> Record:
    """Convert parsed JSON to a ``kind``; errors call it ``where``."""
    with extra("cli", "reading records"):
        import msgspec

    try:
        return msgspec.convert(value, kind, dec_hook=_path)
    except UnicodeEncodeError:
        raise FirststepError(f"{where} is damaged: it holds half a character") from None
    except (msgspec.ValidationError, FirststepError) as error:  # the second from a __post_init__
        raise FirststepError(f"{where}: {_field_first(str(error))}") from None


def check_format(content: Any, where: str, *known: str) -> str:
    """Return the ``format`` of a parsed file; refuse one that is not in ``known``.

    A file without a format has the last of the known ones.
    """
    if not isinstance(content, dict):
        raise FirststepError(f"{where} is damaged: it holds a {_json_name(content)}, not an object")
    found = content.get("format", known[-1])
    if found in known:
        return str(found)
    family = known[0].rpartition("-")[0]
    if isinstance(found, str) and found.rpartition("-")[0] == family:
        raise FirststepError(
            f"{where} has the format {found}, which this version of firststep does not know; it reads "
            f"{', '.join(known)}: install a newer one"
        )
    raise FirststepError(f"{where} is another kind of file (format {found!r}, not {known[0]})")


def read_json(path: Path) -> Any:
    """Read and parse a JSON file."""
    return parse_json(read_bytes(path), str(path))


def parse_json(text: bytes | str, where: str) -> Any:
    """Parse JSON; errors call it ``where``."""
    try:
        return json.loads(text)
    except ValueError as error:  # bytes that are not UTF-8 included
        raise FirststepError(f"{where} is not valid JSON ({error})") from None
    except RecursionError:
        raise FirststepError(f"{where} is not valid JSON (it is nested too deeply)") from None


def read_bytes(path: Path) -> bytes:
    """Read a regular file; refuse a pipe or device, which could block forever."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise FirststepError(f"{path} is not a regular file")
        return path.read_bytes()
    except OSError as error:
        raise FirststepError(f"cannot read {path}: {error.strerror}") from None


def _path(kind: type, value: Any) -> Any:
    """Convert text to a ``Path``, which JSON does not have."""
    if kind is not Path:
        raise TypeError(f"a record cannot hold {kind}")
    if not isinstance(value, str):
        raise TypeError(f"expected a path, got {_json_name(value)}")
    return Path(value)


def _field_first(message: str) -> str:
    """Turn ``Expected `int`, got `str` - at `$.steps` `` into ``steps: expected int, got str``."""
    found = re.fullmatch(r"(?s)(.*) - at `(?:key in )?\$\.?(.*?)`", message)
    what, field = (found[1], found[2]) if found else (message, "")
    what = what.replace("`", "")
    what = re.sub(r"^Object missing required field (\S+)", r"\1 is missing", what)
    if what.startswith("Expected"):
        what = "e" + what[1:]
    return f"{field}: {what}" if field else what


def _json_name(value: Any) -> str:
    names = {list: "list", str: "text", bool: "truth value", type(None): "null"}
    return names.get(type(value), "number")
