-- The statements of studies, as the role deskbus_orchestrator.

-- name: of_name
select * from studies where name = $1

-- name: count
select count(*) from studies

-- name: begin
insert into studies (study_id, name, sha256, body, offline, cells) values ($1, $2, $3, $4, $5, $6)
on conflict (name) do nothing

-- name: go_on
-- What is there already is not asked again; the budget may have grown.
update studies
set body = $2, offline = $3, reason = '',
    status = case when status = 'completed' then status else 'running' end
where name = $1

-- name: try_again
-- A round more, through all cells. Whoever comes second, with the same number of the round, changes
-- nothing. Of a path ($5) no earlier cell counts any more.
update studies
set body = $2, offline = $3, reason = '', status = 'running', ended_at = null, round = round + 1,
    first_round = case when $5 then round + 1 else first_round end, next_cell = 0, refused = 0,
    refusal = ''
where name = $1 and round = $4 and status <> 'running'

-- name: before
-- Each cell by its newest cycle before a round: whether it is to be had again, since an arm failed for
-- what can pass ($3), or for want of time, and what it cost in all its cycles. A memory that is missing
-- spoils no cell.
select distinct on (c.kind, c.number, c.sample) c.kind, c.number, c.sample,
       c.status in ('completed', 'failed') and exists (
           select from operations o
           where o.cycle_id = c.cycle_id and o.step <> 'memorize' and (
               o.status = 'failed' and o.failure ->> 'code' = any($3::text[])
               or o.status = 'cancelled' and not exists (
                   select from operations f
                   where f.cycle_id = o.cycle_id and f.pipeline = o.pipeline and f.status = 'failed'
                       and f.step <> 'memorize'))
       ) as again,
       (sum(c.tokens_spent) over cell)::bigint as tokens, sum(c.cost_usd_spent) over cell as cost_usd
from study_cells c join studies s on s.name = c.study
where c.study = $1 and c.round >= s.first_round and c.round < $2
window cell as (partition by c.kind, c.number, c.sample)
order by c.kind, c.number, c.sample, c.round desc

-- name: stop
update studies set status = 'stopped', reason = $2 where name = $1 and status = 'running'

-- name: standing
-- The study that is at work: the one that began first. Others follow it, so that no call is made
-- twice at once.
select s.*, (select count(*) from cycles where status = 'running' and requester = 'study') as running,
       live_at_work() as live
from studies s
where s.status = 'running'
order by s.started_at limit 1

-- name: resume
-- Commands that rest and are to be sent: all where no live cycle is at work, else those of cells that
-- have rested for $1 s. What nobody sends after this is found by the sweep; the time limits of what
-- rested, and of its cycle, move by that time. Like the sweep's, this statement takes no cycle's lock
-- and changes neither its revision nor what is folded from memory. It waits for no row, so it is in
-- nobody's way: what is locked just now is resumed at the next look.
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

-- name: spent
select coalesce(sum(tokens_spent), 0)::bigint as tokens, coalesce(sum(cost_usd_spent), 0) as cost_usd
from study_cells where study = $1

-- name: asked
-- From cell $2 on, in round $6: those before $3 are asked for, or settled.
update studies set next_cell = $3, refused = refused + $4,
    refusal = case when refusal = '' then $5 else refusal end
where name = $1 and next_cell = $2 and round = $6

-- name: complete
update studies set status = 'completed', ended_at = clock_timestamp()
where name = $1 and status = 'running' and round = $2
