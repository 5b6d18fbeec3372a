"""The datasets that firststep knows: each file here defines some and registers them at its end.

Importing this package imports them all, so that a new file needs no other edit.
"""

import pkgutil
from importlib import import_module

for _file in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")
