-- The configurations that the desk has tried, as the role deskbus_study.

-- name: mark
-- Changes with every other study that ends or goes on, and with every strategy.
select concat_ws(' ',
    (select concat_ws(' ', count(*), max(ended_at)) from studies where status <> 'running' and name <> $1),
    (select concat_ws(' ', count(train_op_id), count(backtest_op_id)) from strategies)) as mark

-- name: others
-- Files of the studies that have ended, the newest first.
select name, body, first_round from studies where status <> 'running' and name <> $1 order by started_at desc limit $2

-- name: backtests
-- Each spec that was trained, once, as it came out last, whose held-out period reaches into these
-- sessions on one of these assets; the equity of the newest ones at each close.
select it.name,
       case when it.place <= $4 then (it.backtest -> 'sessions')::text end as sessions,
       case when it.place <= $4 then (it.backtest -> 'equity')::text end as equity
from (
    select t.name, convert_from(b.result, 'UTF8')::json as backtest,
           row_number() over (order by t.designed_at desc) as place
    from (
        select distinct on (spec_sha256) * from strategies where train_op_id is not null
        order by spec_sha256, backtest_op_id is null, designed_at desc
    ) t
    join operations d on d.op_id = t.design_op_id
    cross join lateral (select convert_from(d.result, 'UTF8')::jsonb -> 'spec' as spec offset 0) s
    left join operations b on b.op_id = t.backtest_op_id
    where (s.spec -> 'held_out' ->> 'first')::date <= $2
      and (s.spec -> 'held_out' ->> 'last')::date >= $1
      and s.spec -> 'universe' ?| $3::text[]
) it
order by it.place
