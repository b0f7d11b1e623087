-- Lists that people filter, and the search over everything, as the role deskbus_console. Studies have
-- lists of their own: their cells are not among the desk's cycles.

-- name: cycles_beginning
-- Ids that begin alike lie between two ids, so a shortened id is a range of the primary key.
select cycle_id, kind, as_of, status, requester, request, accepted_at, ended_at,
       tokens_spent as tokens, cost(cost_usd_spent, unpriced) as cost_usd
from cycles
where cycle_id between $1 and $2 order by cycle_id limit $3

-- name: operations_beginning
select op_id, state, step, status from operations
where op_id between $1 and $2 order by op_id limit $3

-- name: place_of_operation
select c.accepted_at, o.created_at, o.op_id
from operations o join cycles c using (cycle_id) where o.op_id = $1

-- name: operations_listed
select o.op_id, o.cycle_id, o.pipeline, o.state, o.step, o.service, o.attempt, o.status, o.epoch,
       o.progress, o.tokens, cost(o.cost_usd, o.unpriced) as cost_usd, o.input_tokens,
       o.output_tokens, o.cache_read_tokens, o.cache_write_tokens, o.result, o.failure, o.created_at, o.started_at, o.finished_at,
       o.account, o.as_of, c.accepted_at
from operations o join cycles c using (cycle_id) where o.op_id = any($1::uuid[])
order by c.accepted_at desc, o.created_at desc, o.op_id desc

-- name: operations_of_cycles
-- As many as one page has: cycles whose ids begin alike are few.
select o.op_id, o.cycle_id, o.pipeline, o.state, o.step, o.service, o.attempt, o.status, o.epoch,
       o.progress, o.tokens, cost(o.cost_usd, o.unpriced) as cost_usd, o.input_tokens,
       o.output_tokens, o.cache_read_tokens, o.cache_write_tokens, o.result, o.failure, o.created_at, o.started_at, o.finished_at,
       o.account, o.as_of, c.accepted_at
from operations o join cycles c using (cycle_id) where o.cycle_id = any($1::uuid[])
order by c.accepted_at desc, o.created_at desc, o.op_id desc limit $2

-- name: recent_operations
-- Of the newest cycles only: a step that is rare among them is not searched for in all there are.
-- Behind a place in the list ($8 to $10).
select o.op_id, o.cycle_id, o.pipeline, o.state, o.step, o.service, o.attempt, o.status, o.epoch,
       o.progress, o.tokens, cost(o.cost_usd, o.unpriced) as cost_usd, o.input_tokens,
       o.output_tokens, o.cache_read_tokens, o.cache_write_tokens, o.result, o.failure, o.created_at, o.started_at, o.finished_at,
       o.account, o.as_of, c.accepted_at
from (
    select cycle_id, accepted_at from cycles where accepted_at <= $8 and requester <> 'study'
    order by accepted_at desc limit $4
) c
join operations o using (cycle_id)
where ($1::text is null or o.status = $1) and ($2::text is null or o.step = $2)
  and ($5::text is null or o.account = $5) and o.as_of between $6 and $7
  and (c.accepted_at, o.created_at, o.op_id) < ($8, $9, $10)
order by c.accepted_at desc, o.created_at desc, o.op_id desc limit $3

-- name: open_operations
-- What goes on has a partial index, and is little.
select o.op_id, o.cycle_id, o.pipeline, o.state, o.step, o.service, o.attempt, o.status, o.epoch,
       o.progress, o.tokens, cost(o.cost_usd, o.unpriced) as cost_usd, o.input_tokens,
       o.output_tokens, o.cache_read_tokens, o.cache_write_tokens, o.result, o.failure, o.created_at, o.started_at, o.finished_at,
       o.account, o.as_of, c.accepted_at
from operations o join cycles c using (cycle_id)
where o.status in ('pending', 'running') and o.status = $1 and ($2::text is null or o.step = $2)
  and c.requester <> 'study'
  and ($4::text is null or o.account = $4) and o.as_of between $5 and $6
  and (o.created_at, o.op_id) < ($7, $8)
order by o.created_at desc, o.op_id desc limit $3

-- name: lost_operations
select o.op_id, o.cycle_id, o.pipeline, o.state, o.step, o.service, o.attempt, o.status, o.epoch,
       o.progress, o.tokens, cost(o.cost_usd, o.unpriced) as cost_usd, o.input_tokens,
       o.output_tokens, o.cache_read_tokens, o.cache_write_tokens, o.result, o.failure, o.created_at, o.started_at, o.finished_at,
       o.account, o.as_of, c.accepted_at
from operations o join cycles c using (cycle_id)
where o.status in ('failed', 'cancelled') and o.status = $1 and ($2::text is null or o.step = $2)
  and c.requester <> 'study'
  and ($4::text is null or o.account = $4) and o.as_of between $5 and $6
  and o.created_at <= $7 and (o.created_at, o.op_id) < ($7, $8)
order by o.created_at desc, o.op_id desc limit $3

-- name: tickers_like
-- One row an account, book and ticker: as many as were ever held.
select distinct ticker from balances
where book = 'position' and position(upper($1) in ticker) > 0
order by ticker limit $2

-- name: walked_by_time
-- Behind a place in the list, along an index: as many rows as are asked for, however many there are.
-- Those of one moment are in the order of their ids, so that none is lost between two pages.
select cycle_id, kind, as_of, status, requester, request, accepted_at, ended_at,
       tokens_spent as tokens, cost(cost_usd_spent, unpriced) as cost_usd
from cycles
where accepted_at <= $1 and (accepted_at, cycle_id) < ($1, $2) and requester <> 'study'
order by accepted_at desc, cycle_id desc limit $3

-- name: walked_by_status
select cycle_id, kind, as_of, status, requester, request, accepted_at, ended_at,
       tokens_spent as tokens, cost(cost_usd_spent, unpriced) as cost_usd
from cycles
where status = $4 and accepted_at <= $1 and (accepted_at, cycle_id) < ($1, $2)
  and requester <> 'study'
order by accepted_at desc, cycle_id desc limit $3

-- name: walked_by_kind
select cycle_id, kind, as_of, status, requester, request, accepted_at, ended_at,
       tokens_spent as tokens, cost(cost_usd_spent, unpriced) as cost_usd
from cycles
where kind = $4 and accepted_at <= $1 and (accepted_at, cycle_id) < ($1, $2)
  and requester <> 'study'
order by accepted_at desc, cycle_id desc limit $3

-- name: walked_by_session
select cycle_id, kind, as_of, status, requester, request, accepted_at, ended_at,
       tokens_spent as tokens, cost(cost_usd_spent, unpriced) as cost_usd
from cycles
where as_of between $4 and $5 and (as_of, accepted_at, cycle_id) < ($6, $1, $2)
  and requester <> 'study'
order by as_of desc, accepted_at desc, cycle_id desc limit $3

-- name: cycles_listed
select cycle_id, kind, as_of, status, reason, requester, request, state, accepted_at, ended_at,
       tokens_spent as tokens, cost(cost_usd_spent, unpriced) as cost_usd, input_tokens, output_tokens,
       cache_read_tokens, cache_write_tokens
from cycles where cycle_id = any($1::uuid[])

-- name: executed
-- The execution of each pipeline of these cycles: it is what most outcomes are told by.
select cycle_id, pipeline, result from operations
where cycle_id = any($1::uuid[]) and step = 'execute' and result is not null

-- name: achieved
-- The deeds of pipelines without orders, as numbers: no contract leaves the database, and each is
-- read as JSON once (`offset 0`).
select o.cycle_id, o.pipeline, o.step,
       case o.step when 'check_exits' then json_array_length(made.contract -> 'checks')
                   when 'picks' then json_array_length(made.contract -> 'picks')
                                     + json_array_length(made.contract -> 'sell_recommendations')
                   when 'analyst' then json_array_length(made.contract -> 'tickers')
                   when 'validate' then json_array_length(made.contract -> 'decisions')
                   when 'validate_exits' then json_array_length(made.contract -> 'decisions')
                   end as number,
       case o.step when 'check_exits' then (
           select count(*)::int from json_array_elements(made.contract -> 'checks') as check_of
           where check_of ->> 'quantity' is not null) end as exits,
       case o.step when 'validate' then array(
           select check_of ->> 'rule' from json_array_elements(made.contract -> 'checks') as check_of
           where check_of ->> 'outcome' = 'vetoed') end as vetoes,
       case o.step when 'design' then made.contract #>> '{spec,name}'
                   when 'assess' then made.contract ->> 'verdict' end as word
from operations o
cross join lateral (select convert_from(o.result, 'UTF8')::json as contract offset 0) made
where o.cycle_id = any($1::uuid[]) and o.status = 'completed' and o.result is not null
  and o.step in ('check_exits', 'analyst', 'picks', 'validate', 'validate_exits', 'design', 'assess')
order by o.created_at
