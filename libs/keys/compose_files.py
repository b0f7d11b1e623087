"""The files beside compose.yaml that are yours, and that git ignores."""

import re
import shutil
from pathlib import Path

SECRETS_DIR = Path("deploy/secrets")
"""Where compose.yaml looks for secrets."""
FOLDERS = ("strategies", "exit_signals", "reports")


def write_compose_files(root: Path, secrets: Path) -> tuple[str, ...]:
    """Make what compose.yaml in `root` needs beside the secrets, where these are the ones it reads.

    `.env` from deploy/env.example, in which only the owner of the secrets is ever changed again;
    `deskbus.toml` from deploy/deskbus.toml; and the folders that containers write into, which
    Docker would make as root's. Gives the names of what it wrote. Raises OSError.
    """
    if not (root / "compose.yaml").exists() or secrets.resolve() != (root / SECRETS_DIR).resolve():
        return ()
    written = [f"{name}/" for name in FOLDERS if not (root / name).exists()]
    for name in FOLDERS:
        (root / name).mkdir(exist_ok=True)
    settings = root / "deskbus.toml"
    if not settings.exists():
        shutil.copyfile(root / "deploy/deskbus.toml", settings)
        written.append(settings.name)
    env = root / ".env"
    before = env.read_text(encoding="utf-8") if env.exists() else ""
    owner = secrets.stat()
    text = before or (root / "deploy/env.example").read_text(encoding="utf-8")
    for name, number in (("DESKBUS_UID", owner.st_uid), ("DESKBUS_GID", owner.st_gid)):
        line = f"{name}={number}"
        text, changed = re.subn(rf"^{name}=.*$", line, text, flags=re.MULTILINE)
        text += "" if changed else f"{line}\n"
    if text != before:
        env.write_text(text, encoding="utf-8")
        written.append(env.name)
    return tuple(written)
