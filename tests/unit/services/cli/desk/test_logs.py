"""Which logs there are."""

from services.cli.shell.service_names import SERVICES
from services.launcher import BACKBONE
from services.launcher import SERVICES as STARTED


def test_every_service_that_a_desk_starts_has_a_log_to_show() -> None:
    assert set(SERVICES) == {*BACKBONE, *STARTED}
