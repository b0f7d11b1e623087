"""The AsyncAPI document and the JSON Schemas, generated from the contracts and the subject table.

`python -m libs.bus.document.asyncapi contracts/schemas` writes them, `--check` only compares.
Writing refuses to break a contract that is there already; `--replace` writes all the same, and is
meant for contracts that no release has published.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic.json_schema import JsonSchemaMode

from libs.bus.document.build import Json, Model, document, models
from libs.bus.document.schema_changes import breaks

DOCUMENT = "asyncapi.json"
SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def generated() -> Mapping[str, str]:
    """All generated files: name below the schemas' directory, and text."""
    files = {f"{model.__name__}.json": _schema(model, mode) for model, mode in models()}
    return {name: _text(body) for name, body in sorted({**files, DOCUMENT: document()}.items())}


def _schema(model: Model, mode: JsonSchemaMode) -> Json:
    return {"$schema": SCHEMA_DIALECT, **model.model_json_schema(mode=mode)}


def _text(body: Json) -> str:
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def differences(directory: Path, files: Mapping[str, str]) -> Sequence[str]:
    """The differences between the directory and `files`; one sentence each."""
    there = {path.name for path in directory.glob("*.json")}
    stale = [f"{name} is of no contract any more" for name in sorted(there - files.keys())]
    missing = [f"{name} is not there" for name in files if name not in there]
    changed = [
        f"{name} is not what the contracts say now"
        for name, text in files.items()
        if name in there and (directory / name).read_text() != text
    ]
    return [*stale, *missing, *changed]


def broken_contracts(directory: Path, files: Mapping[str, str]) -> Sequence[str]:
    """The breaking changes that `files` would bring to users of the contracts in the directory."""
    broken = []
    for path in sorted(directory.glob("*.json")):
        if path.name not in files:
            broken.append(f"{path.stem} was removed")
            continue
        old, new = json.loads(path.read_text()), json.loads(files[path.name])
        changes = _subject_breaks(old, new) if path.name == DOCUMENT else breaks(old, new)
        broken += [f"{path.stem}: {change}" for change in changes]
    return broken


def _subject_breaks(old: Json, new: Json) -> Sequence[str]:
    """Subjects that are gone, or carry another message; schemas are compared file by file."""
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
    files = generated()
    broken = broken_contracts(options.directory, files)
    if broken and not options.replace:
        listing = "\n".join(f"  {change}" for change in broken)
        sys.exit(
            f"These changes break a contract:\n{listing}\nGive the changed message a new version "
            "(docs/contracts.md), or pass --replace where no release has published it."
        )
    if options.check:
        wrong = differences(options.directory, files)
        sys.exit("\n".join([*wrong, "Run `make contracts` and commit."]) if wrong else 0)
    options.directory.mkdir(parents=True, exist_ok=True)
    for path in options.directory.glob("*.json"):
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        (options.directory / name).write_text(text)


if __name__ == "__main__":
    main()
