"""Atomic files, locks, cores, worker processes, registries and tables, for every package.

Of firststep this package imports only ``firststep.errors``.
"""

from firststep.utils.cores import available_cores
from firststep.utils.files import (
    check_file_writable,
    check_folder_writable,
    make_folder,
    remove_leftovers,
    replacing,
    write_json,
    write_text,
)
from firststep.utils.interrupt import StopRequest, stop_requests
from firststep.utils.locks import is_locked, locked, try_lock
from firststep.utils.processes import Send, WorkerProcess
from firststep.utils.records import check_format, parse_json, read_bytes, read_json, read_record, to_record
from firststep.utils.registry import Registry, UnknownName
from firststep.utils.table import MISSING, Cell, Table
from firststep.utils.wording import counted

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
    "check_file_writable",
    "check_folder_writable",
    "check_format",
    "counted",
    "is_locked",
    "locked",
    "make_folder",
    "parse_json",
    "read_bytes",
    "read_json",
    "read_record",
    "remove_leftovers",
    "replacing",
    "stop_requests",
    "to_record",
    "try_lock",
    "write_json",
    "write_text",
]
