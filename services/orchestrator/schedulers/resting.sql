-- Commands that rest, as the role deskbus_orchestrator.

-- name: resume
-- Commands that rest and are to be sent: all where no live cycle is at work, else those of cells that
-- have rested for $1 s. What nobody sends after this is found by the sweep; the time limits of what
-- rested, and of its cycle, move by that time. Like the sweep's, this statement takes no cycle's lock
-- and waits for no row, so it is in nobody's way: what is locked just now is resumed at the next look.
with resting as (
    select op_id, cycle_id, rests_since from operations
    where rests_since is not null and status = 'pending'
),
resumed as (
    select o.op_id, o.cycle_id, r.rests_since, clock_timestamp() - r.rests_since as by
    from operations o join resting r using (op_id) join cycles c on c.cycle_id = o.cycle_id
    where o.rests_since is not null and o.status = 'pending'
      and (live_at_work() = 0 or exists (
          select from resting eldest where eldest.cycle_id = o.cycle_id
              and eldest.rests_since <= clock_timestamp() - $1 * interval '1 second'))
    limit $3
    for update of o, c skip locked
),
of_cycles as (
    update cycles c
    set deadline_at = c.deadline_at + rested.by, waited_s = c.waited_s + extract(epoch from rested.by)
    from (select cycle_id, max(by) as by from resumed group by cycle_id) rested
    where c.cycle_id = rested.cycle_id and c.status = 'running'
)
update operations o
set rests_since = null, deadline_at = o.deadline_at + r.by,
    due_at = clock_timestamp() + $2 * interval '1 second'
from resumed r where o.op_id = r.op_id
returning o.op_id, o.cycle_id, o.service, o.step, o.command
