"""The names of settings in sentences for people: as they are set here."""

import os
import re

from libs.runtime.own_text import Unreadable
from libs.runtime.settings import SETTINGS_FILE, settings_in_file

_VARIABLE = re.compile(r"\bDESKBUS_([A-Z][A-Z0-9_]*)(?![A-Z0-9_=])")


def as_set(text: str) -> str:
    """A text for people, with the settings that it names called as they are set here: in the
    settings file by `replay_dir in deskbus.toml`, all others by their variable."""
    if _VARIABLE.search(text) is None:
        return text
    try:
        in_file = settings_in_file()
    except Unreadable:
        return text  # whoever reads it is told that first

    def name(match: re.Match[str]) -> str:
        setting = match[1].lower()
        is_of_file = setting in in_file and match[0] not in os.environ
        return f"{setting} in {SETTINGS_FILE}" if is_of_file else match[0]

    return _VARIABLE.sub(name, text)
