"""What a server says of itself when it begins to listen."""

import pytest

from libs.runtime.http_address import HttpAddress
from libs.runtime.ports import choose_port
from libs.web.monitoring import nothing_else
from libs.web.server import serving
from tests.fakes.log_lines import log_lines

EVERYWHERE = "0.0.0.0"


@pytest.mark.parametrize(("token", "is_warned"), [(None, False), ("a-token-of-some-length", True)])
async def test_plain_text_is_warned_of_only_where_a_token_could_be_read(
    token: str | None, *, is_warned: bool
) -> None:
    port = choose_port(None, set())
    with log_lines() as lines:
        async with serving(nothing_else, HttpAddress(EVERYWHERE, port, token)):
            pass
    (listening,) = [line for line in lines if line["event"] == "http.listening"]
    assert listening["url"] == f"http://{EVERYWHERE}:{port}"
    assert ("http.plain" in {line["event"] for line in lines}) is is_warned
