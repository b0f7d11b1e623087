"""The five questions of a desk with models, in a half year with every end that a cycle can have.

The long form, with the demo's year and a decision a week, is `python -m tests.chaos.questions`.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from libs.runtime.http_address import http_address
from libs.servers.embedded_thread import held_in_thread
from tests.chaos import half_year
from tests.chaos.questions import ask, reader
from tests.fakes.model_server import model_server
from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.conftest import desk_in


def test_every_question_about_a_half_year_has_an_answer(
    make_open_dir: Callable[[], Path],
    own_environment_in: OwnEnvironmentIn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = make_open_dir()
    with held_in_thread(lambda: model_server(half_year.replied, None)) as model:
        for name, value in half_year.environment(folder, model.openai_url).items():
            monkeypatch.setenv(name, value)
        with desk_in(folder, own_environment_in, http_enabled=True, http_port=0) as desk:
            address = http_address(desk.settings)
            assert address is not None
            days = half_year.sessions(half_year.QUARTER)
            half_year.live(address.url, days)
            answers = ask(reader(address.url))
    assert answers.empty == []
    assert answers.met.keys() >= half_year.MET, half_year.MET - answers.met.keys()
