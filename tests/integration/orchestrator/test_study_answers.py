"""Answers that studies have paid for: for how long they are kept, as the orchestrator's role."""

import uuid

from libs.postgres.pool import Pool
from libs.runtime.settings import Settings
from services.orchestrator import study_answers

OLD, NEW = b"\x01" * 32, b"\x02" * 32


async def test_what_was_paid_for_too_long_ago_is_forgotten_and_the_rest_stays(pool: Pool) -> None:
    kept_s = Settings().study.answers_kept_s
    for address, age_s in ((OLD, kept_s + 60), (NEW, kept_s - 60)):
        await pool.execute(
            "insert into study_answers (address, reply, op_id, index, kept_at)"
            " values ($1, '', $2, 0, clock_timestamp() - $3 * interval '1 second')",
            address,
            uuid.uuid4(),
            age_s,
        )

    await study_answers.forget(pool, kept_s)

    left = await pool.fetch("select address from study_answers where address in ($1, $2)", OLD, NEW)
    assert [row["address"] for row in left] == [NEW]
