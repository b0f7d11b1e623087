"""UTF-8 for all texts and names, whatever the locale of this machine says."""

import os
import sys


def use_utf8() -> None:
    """Start this program again in Python's UTF-8 mode, where it is not in it or a UTF-8 locale.

    Under a locale of another encoding Python would read the desk's own files and everybody's data
    in that encoding, and pass names of files on that are not as the file system has them. To be
    called first: what was done so far is done again.
    """
    if sys.getfilesystemencoding() == "utf-8":
        return
    os.environ["PYTHONUTF8"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606
