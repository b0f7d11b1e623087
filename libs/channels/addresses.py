"""Where channels' addresses and keys are: the environment, or one file each among the secrets.

DESKBUS_NOTIFY_PHONE, or notify_phone.url; the key of a webhook DESKBUS_NOTIFY_PHONE_KEY, or
notify_phone.key.
"""

from collections.abc import Mapping
from pathlib import Path

from pydantic import SecretStr

from libs.channels.channel import ChannelUnusable
from libs.runtime.notify_settings import variable_name

PREFIX = "DESKBUS_NOTIFY_"
KEY_CHARS_MIN = 16
SECRET_CHARS_MAX = 8_192
HOW_TO_MAKE_ONE = "python -c 'import secrets; print(secrets.token_urlsafe(32))'"


class Addresses:
    """Reads addresses and keys by channel, at once and not again."""

    def __init__(self, environment: Mapping[str, str], directory: Path) -> None:
        self._environment = environment
        self._directory = directory

    def address(self, channel: str) -> SecretStr:
        """The channel's address. Raises ChannelUnusable."""
        return self._secret(channel, "", "url")

    def key(self, channel: str) -> SecretStr:
        """The key that a webhook is signed with. Raises ChannelUnusable."""
        key = self._secret(channel, "_KEY", "key")
        if len(key.get_secret_value()) < KEY_CHARS_MIN:
            raise ChannelUnusable(
                f"the key of webhook {channel} must hold {KEY_CHARS_MIN} characters or more "
                f"({HOW_TO_MAKE_ONE})"
            )
        return key

    def _secret(self, channel: str, suffix: str, ending: str) -> SecretStr:
        variable = f"{PREFIX}{variable_name(channel)}{suffix}"
        file = self._directory / f"notify_{channel}.{ending}"
        text = self._environment.get(variable, "").strip() or _read(file)
        if not text:
            raise ChannelUnusable(f"neither {variable} is set, nor is there a file {file}")
        if len(text) > SECRET_CHARS_MAX or not text.isprintable():
            raise ChannelUnusable(f"what {variable} or {file} holds is no single line of text")
        return SecretStr(text)


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ChannelUnusable(f"{file} cannot be read ({type(error).__name__})") from None
