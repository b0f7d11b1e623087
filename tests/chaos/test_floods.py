"""The short form of `tests.chaos.floods`: two floods over a whole desk, without a look at times."""

from tests.chaos.floods import MEMORY_BYTES_MAX, measured


def test_a_desk_whose_endpoint_pours_keeps_its_memory_and_ends_its_cycles() -> None:
    for outcome in measured(["a gzip bomb of empty lists", "an endless line"]):
        assert outcome.above_rest < MEMORY_BYTES_MAX
        assert outcome.status in {"failed", "completed"}
