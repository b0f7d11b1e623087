"""Whether a contract may still be called the same contract after a change.

A published contract only gains optional fields, and enumerations only gain values: its readers
ignore fields and values that they do not know. Everything else is a new version on a new subject.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

WORDS = frozenset({"title", "description", "examples", "$defs", "$schema", "$id"})
"""Keys that bind nobody."""


def breaks(old: Schema, new: Schema) -> list[str]:
    """The changes from `old` to `new` that break its users; one sentence each."""
    return list(dict.fromkeys(_Comparison(old, new).at("", old, new)))


def broken_schemas(old: Mapping[str, Schema], new: Mapping[str, Schema]) -> list[str]:
    """The same for all definitions of a document, each change once, below the name that it has."""
    compared = _Comparison({"$defs": old}, {"$defs": new})
    return [
        f"{name}: {change}"
        for name in sorted(old.keys() & new.keys())
        for change in compared.at("", {"$ref": name}, {"$ref": name})
    ]


class _Comparison:
    """Walks two schemas side by side, through their references."""

    def __init__(self, old: Schema, new: Schema) -> None:
        self._old = old.get("$defs", {})
        self._new = new.get("$defs", {})
        self._seen: set[tuple[str, str]] = set()

    def at(self, path: str, old: Any, new: Any) -> Iterator[str]:
        """The breaks at `path` and below."""
        if not isinstance(old, Mapping) or not isinstance(new, Mapping):
            if old != new:
                yield f"{path or 'the message'} changed from {old!r} to {new!r}"
            return
        pair = (old.get("$ref", ""), new.get("$ref", ""))
        if all(pair):
            if pair in self._seen:
                return
            self._seen.add(pair)
        old, new = _resolved(old, self._old), _resolved(new, self._new)
        yield from self._fields(path, old, new)
        for key in sorted((old.keys() | new.keys()) - WORDS - {"properties", "required"}):
            yield from self._key(path, key, old.get(key), new.get(key))

    def _fields(self, path: str, old: Schema, new: Schema) -> Iterator[str]:
        before, after = old.get("properties", {}), new.get("properties", {})
        needed_before, needed_after = set(old.get("required", ())), set(new.get("required", ()))
        for name, schema in before.items():
            where = f"{path}.{name}".lstrip(".")
            if name not in after:
                yield f"{where} was removed"
                continue
            if (name in needed_before) != (name in needed_after):
                now = "required" if name in needed_after else "optional"
                yield f"{where} became {now}"
            yield from self.at(where, schema, after[name])
        for name in sorted(needed_after - before.keys()):
            yield f"{path}.{name}".lstrip(".") + " is new and required; give it a default"

    def _key(self, path: str, key: str, old: Any, new: Any) -> Iterator[str]:
        where = path or "the message"
        if key == "enum" and isinstance(old, list) and isinstance(new, list):
            gone = [value for value in old if value not in new]
            if gone:
                yield f"{where} no longer allows {', '.join(map(str, gone))}"
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            for number, (before, after) in enumerate(zip(old, new, strict=True)):
                yield from self.at(f"{path}<{key} {number + 1}>", before, after)
        elif key == "default" and isinstance(old, Mapping) and isinstance(new, Mapping):
            # What it gains are fields that are new themselves.
            remaining = {name: new.get(name) for name in old}
            yield from self.at(f"{path}<default>", old, remaining)
        elif isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from self.at(f"{path}<{key}>", old, new)
        elif old != new:
            yield f"{where}: {key} changed from {old!r} to {new!r}"


def _resolved(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    ref = schema.get("$ref")
    if not isinstance(ref, str):
        return schema
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**_resolved(definitions[ref.rpartition("/")[2]], definitions), **beside}
