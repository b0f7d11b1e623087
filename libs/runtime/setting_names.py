"""The names of settings in sentences for people: as they are set here."""

import os
import re

from libs.runtime.own_text import UnreadableFile
from libs.runtime.settings import SETTINGS_FILE, all_settings, is_in, settings_in_file, variable

_VARIABLE = re.compile(r"\bDESKBUS_[A-Z][A-Z0-9_]*(?![A-Z0-9_=])")


def as_set(text: str) -> str:
    """A text for people, with the settings that it names called as they are set here: in the
    settings file by `market.replay_dir in deskbus.toml`, all others by their variable."""
    if _VARIABLE.search(text) is None:
        return text
    try:
        in_file = settings_in_file()
    except UnreadableFile:
        return text  # whoever reads it is told that first

    names = {variable(name): name for name, _ in all_settings()}

    def name(match: re.Match[str]) -> str:
        setting = names.get(match[0])
        if setting is None or match[0] in os.environ or not is_in(in_file, setting):
            return match[0]
        return f"{setting} in {SETTINGS_FILE}"

    return _VARIABLE.sub(name, text)
