"""Reading untrusted pickles: numpy arrays and plain containers, nothing else, and never all in memory."""

from firststep.data.unpickle.opcodes import load_pickle
from firststep.data.unpickle.values import (
    ArrayInFile,
    EncodedBytes,
    as_array,
    as_bytes,
    as_name,
    as_names,
    as_whole_numbers,
    with_text_keys,
)

__all__ = [
    "ArrayInFile",
    "EncodedBytes",
    "as_array",
    "as_bytes",
    "as_name",
    "as_names",
    "as_whole_numbers",
    "load_pickle",
    "with_text_keys",
]
