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

-- name: stop
update studies set status = 'stopped', reason = $2 where name = $1 and status = 'running'

-- name: standing
-- The study that is at work: the one that began first. Others follow it, so that no call is made
-- twice at once. A live cycle is one that is neither a cell nor waits for a person; a strategy cycle
-- takes hours, and has a process of its own.
select s.*, running.cells as running, running.live
from studies s,
     (select count(*) filter (where requester = 'study') as cells,
             count(*) filter (where requester <> 'study' and waiting_since is null
                                    and kind <> 'strategy') as live
      from cycles where status = 'running') running
where s.status = 'running'
order by s.started_at limit 1

-- name: spent
select coalesce(sum(tokens_spent), 0)::bigint as tokens, coalesce(sum(cost_usd_spent), 0) as cost_usd
from study_cells where study = $1

-- name: asked
update studies set next_cell = greatest(next_cell, $2), refused = refused + $3,
    refusal = case when refusal = '' then $4 else refusal end
where name = $1 and next_cell = $2 - 1

-- name: complete
update studies set status = 'completed', ended_at = clock_timestamp()
where name = $1 and status = 'running'
