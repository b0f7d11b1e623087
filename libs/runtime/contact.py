"""A person's mail address among the settings: checked, carried as a secret, shown masked."""

import re
from typing import Annotated

from pydantic import AfterValidator, SecretStr

# Without slashes: what looks like an address of the web is shown as one.
_MAIL = re.compile(r"([!-.0-~]{1,60} ){0,6}[!-.0-?A-~]{1,64}@[!-.0-?A-~]{1,120}\.[!-.0-?A-~]{2,60}")


def _checked(value: SecretStr) -> SecretStr:
    # Into a header goes nothing but plain text; and what was given is not quoted.
    if not _MAIL.fullmatch(value.get_secret_value()):
        raise ValueError("takes an e-mail address in ASCII letters, optionally after a name")
    return value


Contact = Annotated[SecretStr, AfterValidator(_checked)]


def masked(contact: SecretStr) -> str:
    """The address with its first letter and its domain: enough to see which one is set."""
    name, _, domain = contact.get_secret_value().rpartition(" ")[2].partition("@")
    return f"{name[0]}...@{domain}"
