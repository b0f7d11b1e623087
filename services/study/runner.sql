-- The statements of studies, as the role deskbus_study.

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
       c.status in ('completed', 'failed') and coalesce(arms.again, false) as again,
       (sum(c.tokens_spent) over cell)::bigint as tokens, sum(c.cost_usd_spent) over cell as cost_usd
from study_cells c join studies s on s.name = c.study
cross join lateral (
    select bool_or(arm.again) as again from (
        select bool_or(o.status = 'failed' and o.failure ->> 'code' = any($3::text[]))
            or bool_or(o.status = 'cancelled') and not bool_or(o.status = 'failed') as again
        from operations o where o.cycle_id = c.cycle_id and o.step <> 'memorize'
        group by o.pipeline
    ) arm
) arms
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
