"""Pickles as people have them: by Python 2, by Python 3 at protocol 2, and of the newest kind."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path
from typing import ClassVar


class Python2Pickler(pickle._Pickler):
    """Writes byte strings as Python 2 wrote its str: the authors' pickles are from then."""

    def save_bytes(self, data: bytes) -> None:
        if len(data) < 256:
            self.write(pickle.SHORT_BINSTRING + bytes([len(data)]) + data)
        else:
            self.write(pickle.BINSTRING + struct.pack("<i", len(data)) + data)
        self.memoize(data)

    dispatch: ClassVar[dict] = {**pickle._Pickler.dispatch, bytes: save_bytes}


def python2_pickle(path: Path, value: object) -> None:
    with open(path, "wb") as file:
        Python2Pickler(file, protocol=2).dump(value)


def python3_pickle(path: Path, value: object) -> None:
    path.write_bytes(pickle.dumps(value, protocol=2))


def newest_pickle(path: Path, value: object) -> None:
    path.write_bytes(pickle.dumps(value, protocol=5))
