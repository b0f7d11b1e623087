"""TA-Lib, imported without pandas.

`import talib` imports pandas where it is installed, only to accept its Series: 3 s and 43 MB for
each process (measured), and bokeh-sampledata always installs it. We pass arrays. So the import is
shown a missing pandas, which TA-Lib allows for; pandas itself stays importable afterwards.
"""

import sys
from inspect import unwrap
from types import ModuleType, SimpleNamespace

__all__ = ["functions", "talib"]


def _import_talib() -> ModuleType:
    hide = "pandas" not in sys.modules
    if hide:
        sys.modules["pandas"] = None  # type: ignore[assignment]  # Python's way to say "not there"
    try:
        import talib as imported  # noqa: PLC0415 - has to happen between the two
    finally:
        if hide:
            del sys.modules["pandas"]
    return imported


talib = _import_talib()
functions = SimpleNamespace(
    **{name: unwrap(getattr(talib, name)) for name in talib.get_functions()}
)
"""TA-Lib's functions on arrays, without the wrapper that looks for data frames in each call."""
