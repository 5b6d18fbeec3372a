"""A digest of this room's own source code, for the compiler's cache on disk.

That cache knows an operator of ours by its name alone. Without the digest, whoever changes what an operator
computes, or installs another version of the package, would be given the code that was compiled before.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path


def source_digest(folder: Path) -> str:
    """Of the names and contents of all Python and C++ files in ``folder``.

    Where there are none to read (an archive, byte code alone) it is a random number: what is compiled then
    serves one process.
    """
    digest = hashlib.sha256()
    try:
        paths = [path for ending in ("*.py", "*.cpp") for path in folder.rglob(ending)]
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    except OSError:
        files = {}
    if not files:
        return secrets.token_hex(16)
    for name, content in sorted(files.items()):
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()[:32]


# When this is imported, not when something is compiled: the files may change while the process runs.
SOURCE_DIGEST = source_digest(Path(__file__).parent)
