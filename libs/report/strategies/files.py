"""Strategies as files that a person reads and edits: an export, and the way back in.

    strategies/<name>.yaml              the spec
    strategies/<name>/report.html       what it came to, as far as its cycle has come
    strategies/<name>/assessment.json   what was thought of it

What a cycle found is on record in Postgres; nothing is read from here again but a spec that a
person gives to a new cycle.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import orjson
import yaml
from pydantic import ValidationError

from contracts.strategy import STRATEGY_NAME_MAX, StrategySpec
from libs.runtime.errors import DeskError
from libs.runtime.own_text import UnreadableFile, text_in, yaml_in
from libs.runtime.whole_file import beside, write_whole

SPEC_BYTES_MAX = 200_000
SUFFIX_MAX = 10_000
"""Strategies that may share the beginning of a name."""
PERIODS = ("train", "held_out")


READ_FIRST = ("strategy_name", "verdict", "strengths", "weaknesses", "suggestions")
"""Fields of an assessment that its file begins with; where each figure is from follows."""


class ExportFailed(DeskError):
    """A file could not be written to the strategies' directory."""

    code = "export_failed"

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"{path} cannot be written ({error.strerror or error}): let the desk write there, or "
            "name another directory (strategies_dir)"
        )


def spec_in(path: Path) -> StrategySpec:
    """The spec in a file. Raises UnreadableFile, OSError, and pydantic's ValidationError by
    field."""
    return spec_of(text_in(path, SPEC_BYTES_MAX))


def spec_of(text: str) -> StrategySpec:
    """The spec in a YAML text. Raises UnreadableFile, and pydantic's ValidationError by field."""
    return StrategySpec.model_validate(yaml_in(text))


def text_of(spec: StrategySpec) -> str:
    """The spec as YAML: every field in the contract's order, defaults written out."""
    fields = spec.model_dump(mode="json", exclude_none=True, exclude={"version"})
    for name in PERIODS:
        fields[name] = {key: date.fromisoformat(day) for key, day in fields[name].items()}
    text: str = yaml.safe_dump(_plain(fields), sort_keys=False, width=100, allow_unicode=True)
    return text


class StrategyFiles:
    """The strategies' directory; made when the first file is written."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def keep_spec(self, spec: StrategySpec) -> tuple[StrategySpec, Path]:
        """Export the spec; returns it under the name that it got, and the file.

        Where a file of its name holds another spec, the name gets a number; a file that holds this
        very spec is left as it is, comments and all. Raises ExportFailed.
        """
        for name in _names(spec.name):
            named = spec.model_copy(update={"name": name})
            path = self._root / f"{name}.yaml"
            if self._written_anew(path, text_of(named)) or _holds(path, named):
                return named, path
        raise ExportFailed(self._root / f"{spec.name}.yaml", OSError("every name is taken"))

    def keep_assessment(self, name: str, assessment: Mapping[str, Any]) -> Path:
        """Export an assessment over the one before, what people read first. Raises ExportFailed."""
        first = {key: assessment[key] for key in READ_FIRST if key in assessment}
        body = orjson.dumps({**first, **assessment}, option=orjson.OPT_INDENT_2)
        return self._written_over(self.assessment_path(name), body)

    def keep_report(self, name: str, page: str) -> Path:
        """Export a report over the one before; an assessment of that one goes with it.

        Raises ExportFailed.
        """
        written = self._written_over(self._root / name / "report.html", page.encode())
        with _exporting(self.assessment_path(name)):
            self.assessment_path(name).unlink(missing_ok=True)
        return written

    def assessment_path(self, name: str) -> Path:
        """Where a strategy's assessment is exported to."""
        return self._root / name / "assessment.json"

    def _written_over(self, path: Path, body: bytes) -> Path:
        with _exporting(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, body)
        return path

    def _written_anew(self, path: Path, text: str) -> bool:
        """Whether the file was not there and is now, whole at once."""
        with _exporting(path):
            self._root.mkdir(parents=True, exist_ok=True)
            with beside(path, text.encode()) as draft:
                try:
                    os.link(draft, path)
                except FileExistsError:
                    return False
        return True


def _plain(value: Any) -> Any:
    """Whole numbers without a point, as a person would write them."""
    match value:
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def _names(name: str) -> Iterator[str]:
    yield name
    for number in range(2, SUFFIX_MAX):
        suffix = f"-{number}"
        yield f"{name[: STRATEGY_NAME_MAX - len(suffix)]}{suffix}"


def _holds(path: Path, spec: StrategySpec) -> bool:
    try:
        kept = spec_in(path)
    except (UnreadableFile, ValidationError):
        return False
    # Who leaves costs out has the desk's, which `spec` has got by now.
    return kept.model_copy(update={"costs": kept.costs or spec.costs}) == spec


@contextlib.contextmanager
def _exporting(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ExportFailed(path, error) from error
