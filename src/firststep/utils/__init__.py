"""Atomic files, locks, cores, worker processes, registries and tables, for every room.

Nothing here imports another room.
"""

from firststep.utils.cores import available_cores
from firststep.utils.files import read_json, replacing, write_json, write_text
from firststep.utils.interrupt import StopRequest, stop_requests
from firststep.utils.locks import locked, try_lock
from firststep.utils.processes import Send, WorkerProcess
from firststep.utils.registry import Registry, UnknownName
from firststep.utils.table import MISSING, Cell, Table

__all__ = [
    "MISSING",
    "Cell",
    "Registry",
    "Send",
    "StopRequest",
    "Table",
    "UnknownName",
    "WorkerProcess",
    "available_cores",
    "locked",
    "read_json",
    "replacing",
    "stop_requests",
    "try_lock",
    "write_json",
    "write_text",
]
