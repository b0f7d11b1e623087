"""Proposers that a test adds to its desk before it starts, and their tokens."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from libs.keys.credentials import ensure_token
from libs.runtime.proposers import HTTP_TOKEN_FILE, Proposer, Proposers, new_token


def added(secrets: Path, proposers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Add proposers, each for the account of its name, with limits of its own; their tokens."""
    ensure_token(secrets / HTTP_TOKEN_FILE)
    known, tokens = Proposers(secrets), {}
    for name, limits in proposers.items():
        tokens[name], sha256 = new_token()
        known.add(
            Proposer(
                name=name, account=name, token_sha256=sha256, added_at=datetime.now(UTC), **limits
            )
        )
    return tokens
