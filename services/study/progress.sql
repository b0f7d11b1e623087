-- Studies and their cells, as the role deskbus_study.

-- name: studies
-- The newest first, or the one of that name.
select s.*, s.status = 'running' and live_at_work() > 0 as resting
from studies s where $1::text is null or s.name = $1
order by s.started_at desc

-- name: counts
-- How the cells of these studies stand, and what all of their cycles have cost. A cycle ends as its first
-- pipeline does; a cell is completed where all its arms are. In JSON a text cannot hold these bytes, so
-- they are the status of an arm.
select s.name as study, cells.completed, cells.running, cells.ended - cells.completed as failed,
       coalesce(spent.tokens, 0)::bigint as tokens, spent.cost_usd
from unnest($1::text[]) as s (name)
cross join lateral (
    select count(*) filter (where c.status <> 'running') as ended,
           count(*) filter (where c.status = 'running') as running,
           count(*) filter (where c.status = 'completed'
                            and position('"status":"failed"'::bytea in y.state) = 0) as completed
    from study_cells_now c join cycles y using (cycle_id) where c.study = s.name
) cells
cross join lateral (
    select sum(c.tokens_spent) as tokens,
           cost(coalesce(sum(c.cost_usd_spent), 0), coalesce(bool_or(c.unpriced), false)) as cost_usd
    from study_cells c where c.study = s.name
) spent

-- name: calls
-- The newest calls that were paid for, by provider and step: what one took. A call whose answer was
-- on record, or never came, says nothing.
with paid as (
    select started_on, op_id, step from operations where tokens > 0 order by created_at desc limit $2
),
calls as (
    select p.op_id, p.step, split_part(e.entry ->> 'name', ':', 1) as provider,
           (e.usage ->> 'input_tokens')::bigint + (e.usage ->> 'cache_read_tokens')::bigint
               + (e.usage ->> 'cache_write_tokens')::bigint as given,
           (e.usage ->> 'output_tokens')::bigint as made,
           (e.entry ->> 'duration_ms')::float8 / 1000 as seconds
    from paid p join journal j using (started_on, op_id),
         lateral (select convert_from(j.entry, 'UTF8')::json as entry) read,
         lateral (select read.entry, read.entry -> 'usage' as usage) e
    where e.entry ->> 'kind' = 'model'
)
select provider, step, count(*) as calls,
       count(*)::float8 / count(distinct op_id) as calls_a_step,
       percentile_cont(0.5) within group (order by given) as input_tokens,
       percentile_cont(0.5) within group (order by made) as output_tokens,
       percentile_cont(0.5) within group (order by seconds) as seconds
from calls where provider = any($1::text[]) and given > 0 and made > 0
group by provider, step order by provider, step
