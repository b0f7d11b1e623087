"""Keys of model endpoints: from the environment or from a file, never from anywhere else."""

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import SecretStr

from libs.llm.endpoints.endpoint import ModelEndpoint
from libs.llm.errors import ProviderNotUsable


def key_of(
    endpoint: ModelEndpoint, secrets_dir: Path, environment: Mapping[str, str] = os.environ
) -> SecretStr | None:
    """The endpoint's key: its variable, else `key_file`, else `<name>.key` among the secrets.

    None where there is none and none is needed. Raises ProviderNotUsable, which names the places
    that were looked at and never what stands in them.
    """
    source = key_source(endpoint, secrets_dir, environment)
    if source:
        is_variable = source == endpoint.key_variable
        text = environment[source] if is_variable else _read(endpoint, Path(source))
        return _usable(endpoint, text, source)
    path = _file(endpoint, secrets_dir)
    if endpoint.key_file:
        raise ProviderNotUsable(f"{endpoint.name} has no key: its key_file {path} is not there")
    if endpoint.key_needed:
        variable = f"set {endpoint.key_variable}, or " if endpoint.key_variable else ""
        raise ProviderNotUsable(
            f"{endpoint.name} has no key: before the desk starts, {variable}write the key into "
            f"{path}"
        )
    return None


def key_source(
    endpoint: ModelEndpoint, secrets_dir: Path, environment: Mapping[str, str] = os.environ
) -> str:
    """The variable's name or the file's path that `key_of` reads; empty where neither is there."""
    variable = endpoint.key_variable
    if variable and environment.get(variable, "").strip():
        return variable
    path = _file(endpoint, secrets_dir)
    return str(path) if path.exists() else ""


def _file(endpoint: ModelEndpoint, secrets_dir: Path) -> Path:
    return Path(endpoint.key_file) if endpoint.key_file else secrets_dir / f"{endpoint.name}.key"


def _read(endpoint: ModelEndpoint, path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ProviderNotUsable(
            f"{endpoint.name}: its key file {path} cannot be read ({type(error).__name__})"
        ) from None


def _usable(endpoint: ModelEndpoint, text: str, where: str) -> SecretStr:
    key = text.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ProviderNotUsable(
            f"{endpoint.name}: the content of {where} is not a key; it must be one word of ASCII"
        )
    return SecretStr(key)
