"""What Compose makes of several files, as far as ours need it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
COMPOSE, TLS = "compose.yaml", "deploy/compose.tls.yaml"
REPLACED = {"command", "entrypoint", "test"}
"""Lists of which the later one counts; others are joined."""


def composed(*names: str) -> dict[str, Any]:
    """The files as one, the later ones over the earlier ones."""
    whole: dict[str, Any] = {}
    for name in names:
        whole = _over(whole, yaml.safe_load((ROOT / name).read_text()))
    return whole


def _over(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(earlier)
    for name, value in later.items():
        before = earlier.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            both[name] = _over(before, value)
        elif isinstance(before, list) and name not in REPLACED:
            both[name] = [*before, *value]
        else:
            both[name] = value
    return both
