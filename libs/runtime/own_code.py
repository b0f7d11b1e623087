"""A module of the user's, found beside the desk's settings."""

import importlib
import sys
from pathlib import Path
from types import ModuleType


def own_module(name: str) -> ModuleType:
    """Import it from the packages that are installed, else from the working directory.

    The directory comes last on the path: no file in it stands in for a module of Python's or of the
    desk's. Raises ImportError.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    return importlib.import_module(name)
