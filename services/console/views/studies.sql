-- Studies and their cells, as the role deskbus_console.

-- name: studies
-- The newest first, or the one of that name.
select s.*, coalesce(cells.completed, 0) as completed, coalesce(cells.failed, 0) as failed,
       coalesce(cells.running, 0) as running, coalesce(cells.tokens, 0)::bigint as tokens,
       coalesce(cells.cost_usd, 0) as cost_usd,
       s.status = 'running' and live_at_work() > 0 as resting
from studies s
left join lateral (
    select count(*) filter (where c.status = 'completed') as completed,
           count(*) filter (where c.status = 'running') as running,
           count(*) filter (where c.status not in ('completed', 'running')) as failed,
           sum(c.tokens_spent) as tokens, sum(c.cost_usd_spent) as cost_usd
    from study_cells c where c.study = s.name
) cells on true
where $1::text is null or s.name = $1
order by s.started_at desc
