"""The AsyncAPI document, generated from the contracts and the subject table.

`python -m libs.bus.document.asyncapi contracts/schemas` writes it, `--check` only compares. Writing
refuses to break a contract that is there already; `--replace` writes all the same, and is meant for
contracts that no release has published.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from libs.bus.document.build import Json, document
from libs.bus.document.schema_changes import broken_schemas

DOCUMENT = "asyncapi.json"


def generated() -> str:
    """The document's text."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def broken_contracts(old: Json, new: Json) -> Sequence[str]:
    """The changes from one document to another that break users of the contracts."""
    schemas = (body["components"]["schemas"] for body in (old, new))
    return [*_broken_channels(old, new), *broken_schemas(*schemas)]


def _broken_channels(old: Json, new: Json) -> Sequence[str]:
    """Subjects that are gone, or carry another message."""
    named = ("address", "messages")
    return [
        f"channel {key} was removed or carries something else"
        for key, channel in old["channels"].items()
        if {k: channel[k] for k in named}
        != {k: v for k, v in new["channels"].get(key, {}).items() if k in named}
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write or check the files; exits 1 with what is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m libs.bus.document.asyncapi", description=__doc__
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--replace", action="store_true", help="write even if a contract breaks")
    options = parser.parse_args(arguments)
    path, text = options.directory / DOCUMENT, generated()
    there = path.read_text() if path.exists() else ""
    broken = broken_contracts(json.loads(there), json.loads(text)) if there else []
    if broken and not options.replace:
        listing = "\n".join(f"  {change}" for change in broken)
        sys.exit(
            f"These changes break a contract:\n{listing}\nGive the changed message a new version "
            "(docs/contracts.md), or pass --replace where no release has published it."
        )
    if options.check:
        wrong = f"{path} is not what the contracts say now; run `make contracts` and commit"
        sys.exit(wrong if there != text else 0)
    options.directory.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    main()
