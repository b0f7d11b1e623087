"""`deskbus`, and `python -m deskbus`: the command line, from an installed wheel or from a clone."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Run the command line, with the desk's packages on the path of this process and its children.

    A child is `python -m services.NAME`, which would look in the working directory first: there a
    file of the user's would be taken for a module of Python's, or a folder `services` for ours.
    """
    if (HERE / "services").is_dir():
        sys.path.insert(0, str(HERE))
        given = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HERE), given)))
    os.environ["PYTHONSAFEPATH"] = "1"
    from services.cli.main import main as command_line  # noqa: PLC0415 - the path is set above

    command_line()


if __name__ == "__main__":
    main()
