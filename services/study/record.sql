-- What a study left on record, as the role deskbus_study.

-- name: study
select name, body, status, first_round from studies where name = $1

-- name: names
select name from studies order by started_at desc limit $1

-- name: cells
-- Its cycles of a kind that have ended, in the order of their dates.
select cycle_id, as_of, number, sample, status from study_cells_now
where study = $1 and kind = $5 and status <> 'running'
  and ($2::date is null or as_of = $2)
order by number, sample offset $3 limit $4

-- name: decided
-- What each arm of these cells bought, as amounts by ticker beside the account's equity, and the
-- confidence in each of the trader's picks. Projected here: the contracts are long. `|| ''` keeps the
-- planner from the index of all decisions, which it would read whole beside that of the cycles.
select v.cycle_id, v.pipeline,
       (select json_object_agg(d ->> 'asset',
                               (d ->> 'quantity')::numeric * (d -> 'price' ->> 'amount')::numeric)
        from json_array_elements(v.validation -> 'decisions') d
        where d ->> 'action' = 'buy') as bought,
       (convert_from(b.result, 'UTF8')::json -> 'equity' ->> 'amount')::numeric as equity,
       (select json_object_agg(p ->> 'ticker', p -> 'confidence')
        from json_array_elements(convert_from(t.result, 'UTF8')::json -> 'picks') p) as stated,
       (v.validation -> 'substitutes')::text as substitutes
from (select cycle_id, pipeline, convert_from(result, 'UTF8')::json as validation
      from operations
      where cycle_id = any($1::uuid[]) and step || '' = 'validate' and status = 'completed'
      offset 0) v
join operations b on b.cycle_id = v.cycle_id and b.pipeline = v.pipeline
    and b.step = 'books' and b.status = 'completed'
left join operations t on t.cycle_id = v.cycle_id and t.pipeline = v.pipeline
    and t.step = 'picks' and t.status = 'completed'

-- name: probed
-- The guesses of each arm in these cells.
select cycle_id, pipeline, (convert_from(result, 'UTF8')::json -> 'guesses')::text as guesses
from operations
where cycle_id = any($1::uuid[]) and step = 'probe' and status = 'completed'

-- name: spent
select cycle_id, pipeline, sum(tokens)::bigint as tokens, cost(sum(cost_usd), bool_or(unpriced)) as cost_usd
from operations where cycle_id = any($1::uuid[]) group by cycle_id, pipeline

-- name: worth
select account, session, equity, paid_in from snapshots
where account = any($1::text[]) and session between $2 and $3 and equity is not null
order by session
