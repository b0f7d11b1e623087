"""YAML that a person writes: one mapping, without what can make a small text mean a huge value."""

from typing import Any

import yaml

from libs.runtime.errors import DeskError


class YamlUnreadable(DeskError):
    """A text that is no YAML, or not the mapping that it should be."""

    code = "yaml_unreadable"


def mapping_in(text: str, bytes_max: int) -> dict[str, Any]:
    """The mapping in a YAML text of at most so many bytes. Raises YamlUnreadable."""
    if len(text.encode()) > bytes_max:
        raise YamlUnreadable(f"it has more than {bytes_max} bytes, and none needs so many")
    try:
        # An alias can make a small text mean a huge value.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader)):
            raise YamlUnreadable("aliases (*name) are not read: write the value out")
        read = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise YamlUnreadable(f"this is not valid YAML: {_where(error)}") from error
    if not isinstance(read, dict):
        raise YamlUnreadable("it is a mapping that begins with `name:`; this is something else")
    return read


def _where(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or "it cannot be read"
    return f"{what} (line {mark.line + 1}, column {mark.column + 1})" if mark else str(what)
