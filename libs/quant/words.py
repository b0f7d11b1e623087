"""Words of the user's own code, as they are put on record. Pure."""

from contracts.types import shortened


def one_line(text: str, chars_max: int) -> str:
    """The text on one line, without characters that cannot be printed, cut to `chars_max`."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    return shortened(" ".join(shown.split()), chars_max)
