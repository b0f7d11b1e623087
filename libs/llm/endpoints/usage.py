"""Token counts: an endpoint's own where they can be true, else an estimate from the bytes. Pure."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from contracts.types import Usage

BYTES_PER_TOKEN = 2
"""Tokens are estimated high: JSON full of figures has about three bytes to the token."""
TOO_FEW = 8
"""An estimate is at most this many times what a server that counts would report."""
UNSEEN_INPUT_TOKENS = 10_000
"""What an endpoint may add to a request: its chat template and its wording of the tools."""
OUTPUT_SLACK = 2
"""Some servers count thoughts beyond the output limit; none by more than this factor."""
WRITTEN_MAX = 10**15
"""Larger counts are written as `over ...`: Python refuses to write a number of 5,000 digits."""
NOT_COUNTED = "the endpoint reported no token counts"


def _number(value: object) -> object:
    # A truth value or a text is a defect of the endpoint, whatever pydantic could read in it.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")  # noqa: TRY004 - pydantic wants a ValueError
    return value


TokenCount = Annotated[int, Field(ge=0), BeforeValidator(_number)]
"""A count of tokens in a reply: a whole number, and neither a text nor a truth value."""


def checked(
    reported: Usage, *, sent_bytes: int, received_bytes: int, output_tokens_max: int
) -> tuple[Usage, str]:
    """The usage of a call, without its cost, and why it is an estimate; empty where it is the
    endpoint's own.

    No tokenizer makes more than one token of a byte, and no reply has more tokens than were asked
    for; a server that counts does not report less than a fraction of the bytes either.
    """
    estimate = Usage(
        input_tokens=estimated_tokens(sent_bytes),
        output_tokens=min(estimated_tokens(received_bytes), output_tokens_max),
    )
    why = _implausible(reported, estimate, sent_bytes, output_tokens_max)
    return (estimate, f"{why}: estimated from the bytes") if why else (reported, "")


def _implausible(reported: Usage, estimate: Usage, sent_bytes: int, output_tokens_max: int) -> str:
    """Why the reported counts cannot be true; empty where they can."""
    if not reported.tokens:
        return NOT_COUNTED
    taken = reported.input_tokens + reported.cache_read_tokens + reported.cache_write_tokens
    if taken > sent_bytes + UNSEEN_INPUT_TOKENS:
        return f"the endpoint reported {_written(taken)} input tokens for {sent_bytes:,} bytes"
    if reported.output_tokens > OUTPUT_SLACK * output_tokens_max:
        written = _written(reported.output_tokens)
        return f"the endpoint reported {written} output tokens of at most {output_tokens_max:,}"
    if reported.tokens * TOO_FEW <= estimate.tokens:
        return f"the endpoint reported {reported.tokens:,} tokens for about {estimate.tokens:,}"
    return ""


def _written(count: int) -> str:
    return f"{count:,}" if count <= WRITTEN_MAX else f"over {WRITTEN_MAX:,}"


def estimated_tokens(size_bytes: int) -> int:
    """Tokens of so many bytes, rather too many than too few."""
    return -(-size_bytes // BYTES_PER_TOKEN)
