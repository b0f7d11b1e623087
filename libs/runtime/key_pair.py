"""A pair of keys in a file: an id and its secret, as Alpaca gives them out; and where it may go.

The file has two words, the id first, on one line or two. Neither is in a message, a repr or a log.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from libs.runtime.errors import DeskError

FILE_BYTES_MAX = 4_096
WORD_CHARS = (8, 256)
"""The fewest and the most characters of an id, and of a secret."""
SHOWN_CHARS = 4
HIDDEN = "***"
STAND_IN = re.compile(r"https?://(127\.0\.0\.1|localhost)(:[0-9]{1,5})?")


class KeyPairUnusable(DeskError):
    """A key file is missing or empty, or the key would go to another host."""

    code = "key_unusable"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An id and its secret."""

    key_id: SecretStr
    secret: SecretStr

    @property
    def masked(self) -> str:
        """The beginning of the id: enough to see which pair it is."""
        return f"{self.key_id.get_secret_value()[:SHOWN_CHARS]}..."

    def hidden_in(self, text: str) -> str:
        """The text without either of the two, for what a server quotes."""
        for word in (self.secret, self.key_id):
            text = text.replace(word.get_secret_value(), HIDDEN)
        return text


def key_pair_in(path: Path, setting: str) -> KeyPair:
    """The pair in a file that `setting` names. Raises KeyPairUnusable, which says what to do."""
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
        words = content.decode("ascii").split()
    except OSError as error:
        why = f"{path} cannot be read ({error.strerror})"
        raise KeyPairUnusable(f"{setting}: {why}") from None
    except UnicodeDecodeError:
        words = []
    least, most = WORD_CHARS
    is_pair = len(words) == 2 and len(content) <= FILE_BYTES_MAX
    if not is_pair or not all(least <= len(word) <= most and word.isprintable() for word in words):
        raise KeyPairUnusable(
            f"{setting}: {path} must hold two words, the key id and its secret, and nothing else"
        )
    return KeyPair(SecretStr(words[0]), SecretStr(words[1]))


def only_to(host: str, url: str | None, setting: str) -> str:
    """The address that a pair is sent to, without a path: `host` over https where `url` is None.
    Raises KeyPairUnusable unless `url` is that, or a stand-in's on this machine."""
    theirs = f"https://{host}"
    plain = (url or theirs).removesuffix("/")
    if plain != theirs and not STAND_IN.fullmatch(plain):
        raise KeyPairUnusable(
            f"the key is only sent to {theirs}, or to a stand-in on this machine; {setting} names "
            f"another address: {urlsplit(plain).hostname or 'none'}"
        )
    return plain
