"""Large bodies, such as trained models: kept by the orchestrator in parts, under their own hash.

A body is named by the SHA-256 of all its bytes. Whoever reads one puts its parts together and
compares the hash; a body of which a part is missing counts as absent.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from contracts.message import Message

PART_BYTES_MAX = 256_000
"""Bytes of a part; in base64 they stay below the limit of a message."""
PARTS_MAX = 64

BodyHash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
PartNumber = Annotated[int, Field(ge=0, lt=PARTS_MAX)]
Base64 = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9+/]*=*$", max_length=PART_BYTES_MAX * 4 // 3 + 4)
]


class KeepPart(Message):
    """Keep one part of a body. Sent again, it changes nothing."""

    sha256: BodyHash
    part: PartNumber
    parts: int = Field(ge=1, le=PARTS_MAX)
    data: Base64


class PartKept(Message):
    """The part is in the database."""

    outcome: Literal["kept"] = "kept"


class PartQuery(Message):
    """One part of a body."""

    sha256: BodyHash
    part: PartNumber = 0


class BodyPart(Message):
    """The part and the number of parts; `found` is False if it does not exist."""

    found: bool = True
    parts: int = 0
    data: Base64 = ""
