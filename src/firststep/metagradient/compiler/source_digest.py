"""A digest of this package's source code, part of the key of the compiler's cache on disk.

The cache knows our operators by name only. Without the digest a changed operator, or another version of
firststep, would get the code that was compiled before.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path


def source_digest(folder: Path) -> str:
    """Return a digest of the names and contents of all Python and C++ files in ``folder``.

    Without readable sources (an archive, byte code only) it is random, so that processes share nothing.
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


# Computed at import: the files may change while the process runs.
SOURCE_DIGEST = source_digest(Path(__file__).parent)
