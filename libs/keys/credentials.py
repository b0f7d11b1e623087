"""An nkey for each NATS identity, and a password for each Postgres role.

Secrets are files below one directory (0700, files 0600). They are made once and then kept: nothing
here ever replaces a secret that exists. No secret is part of a repr, a log event or an argv.

How a NATS client uses its key: pass the *path* to nats-py, `connect(nkeys_seed=str(path))`. nats-py
2.16 reads the file anew at each connect and reconnect and keeps no copy; `nkeys_seed_str` takes the
seed itself and is for seeds that arrive by environment. Both together: the string wins.
"""

import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

import nkeys

from libs.runtime.errors import StartError
from libs.runtime.own_folder import OWN_FOLDER, make_folder
from libs.runtime.whole_file import OWN, READABLE, write_whole

NATS_CONFIG = "nats.conf"
PASSWORD_BYTES = 24
NKEY_RAW_SEED_BYTES = 32

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")


class CredentialError(StartError):
    """A secret is missing, unreadable or spoiled; the text names the file and what to do."""


def ensure_secrets(
    directory: Path, *, nats_identities: Iterable[str], postgres_roles: Iterable[str]
) -> None:
    """Make the directory and each secret that does not exist yet; tighten modes; keep the rest.

    Safe to call at every start. Raises CredentialError when the directory is not ours or a file
    that should hold a secret is empty.
    """
    _ensure_directory(directory)
    for identity in nats_identities:
        _ensure_file(nkey_seed_path(directory, identity), _new_nkey_seed)
    for role in postgres_roles:
        _ensure_file(postgres_password_path(directory, role), _new_password)


def mode_of(name: str) -> int:
    """The mode of a file in a directory of secrets. What holds public keys only may be read by all:
    a container whose root has no rights beyond its own must read its server's configuration."""
    return READABLE if name == NATS_CONFIG or name.endswith(".pem") else OWN


def ensure_token(path: Path) -> str:
    """The token in a file, which is made with a new one where it is not there.

    Raises CredentialError where the file is empty or cannot be read, OSError where not written.
    """
    make_folder(path.parent)
    _ensure_file(path, _new_password)
    return _read_secret(path)


def nkey_seed_path(directory: Path, identity: str) -> Path:
    """The path of a NATS identity's nkey seed: pass it to nats-py as `nkeys_seed`."""
    return directory / f"{_checked_name(identity)}.nk"


def postgres_password_path(directory: Path, role: str) -> Path:
    """The path of a Postgres role's password."""
    return directory / f"postgres_{_checked_name(role)}.password"


def nkey_public_key(directory: Path, identity: str) -> str:
    """The public half of an identity's nkey (`U...`), safe to show and to put into a config."""
    return public_key_in(nkey_seed_path(directory, identity))


def public_key_in(path: Path) -> str:
    """The public half of the nkey in a file. Raises CredentialError."""
    try:
        public_key: bytes = nkeys.from_seed(bytearray(_read_secret(path).encode())).public_key
    except (nkeys.ErrInvalidSeed, nkeys.ErrInvalidPrefixByte, ValueError) as error:
        raise CredentialError(
            f"{path} does not hold an nkey user seed. Put the right seed back, or delete the file "
            f"and start again to get a new key."
        ) from error
    return public_key.decode()


def postgres_password(directory: Path, role: str) -> str:
    """The password of a Postgres role. Keep it out of argv, logs and exceptions."""
    return _read_secret(postgres_password_path(directory, role))


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} can't name a secret: use lower case letters, digits, '-' and '_', "
            f"starting with a letter."
        )
    return name


def _ensure_directory(directory: Path) -> None:
    make_folder(directory)
    owner = directory.stat().st_uid
    if owner != os.geteuid():
        raise CredentialError(
            f"{directory} belongs to uid {owner}, and this process runs as uid {os.geteuid()}. "
            f"Run as that user, or choose another DESKBUS_DATA_DIR."
        )
    _tighten(directory, OWN_FOLDER)


def _ensure_file(path: Path, new_secret: Callable[[], str]) -> None:
    if path.exists():
        _tighten(path, OWN)
        _read_secret(path)
        return
    write_whole(path, f"{new_secret()}\n".encode(), OWN)


def _tighten(path: Path, mode: int) -> None:
    if stat.S_IMODE(path.stat().st_mode) != mode:
        path.chmod(mode)


def _read_secret(path: Path) -> str:
    try:
        secret = path.read_text().strip()
    except OSError as error:
        raise CredentialError(
            f"Can't read the secret {path} ({error.strerror}). `deskbus secrets init` makes "
            f"missing secrets; an existing one must be readable by this user."
        ) from error
    if not secret:
        raise CredentialError(
            f"The secret {path} is empty. Restore it, or delete it to get a new one."
        )
    return secret


def _new_nkey_seed() -> str:
    seed: bytes = nkeys.encode_seed(
        secrets.token_bytes(NKEY_RAW_SEED_BYTES), nkeys.PREFIX_BYTE_USER
    )
    return seed.decode()


def _new_password() -> str:
    return secrets.token_urlsafe(PASSWORD_BYTES)
