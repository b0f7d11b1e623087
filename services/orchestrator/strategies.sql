-- The table of strategies: written with the results of a strategy cycle's steps, under its lock.

-- name: designed
insert into strategies (cycle_id, name, spec_sha256, as_of, design_op_id)
values ($1, $2, $3, $4, $5) on conflict do nothing

-- name: found
update strategies
set train_op_id = case when $3 = 'train' then $4 else train_op_id end,
    backtest_op_id = case when $3 = 'backtest' then $4 else backtest_op_id end,
    assess_op_id = case when $3 = 'assess' then $4 else assess_op_id end,
    sharpe_ratio = case when $3 = 'backtest' then $5 else sharpe_ratio end
where cycle_id = $1 and name = $2

-- name: trials
-- Each spec once, with the ratio that it came to last.
select count(*) as count, count(sharpe_ratio) as with_ratio,
       coalesce(avg(sharpe_ratio), 0) as ratio_mean,
       coalesce(var_samp(sharpe_ratio), 0) as ratio_variance
from (
    select distinct on (spec_sha256) sharpe_ratio from strategies
    where train_op_id is not null and spec_sha256 <> $1
    order by spec_sha256, sharpe_ratio is null, designed_at desc
) tried

-- name: past
-- The newest ones that were tried, at or before a date, without their series.
select s.name, s.as_of, s.design_op_id, s.train_op_id, s.backtest_op_id, s.assess_op_id,
       convert_from(d.result, 'UTF8')::jsonb as design,
       convert_from(t.result, 'UTF8')::jsonb - array['loss_curve', 'folds'] as training,
       convert_from(b.result, 'UTF8')::jsonb - array['sessions', 'equity', 'benchmark', 'trades',
           'prices'] as backtest,
       convert_from(a.result, 'UTF8')::jsonb as assessment
from (
    select * from strategies where train_op_id is not null and as_of <= $1
    order by designed_at desc limit $2
) s
join operations d on d.op_id = s.design_op_id
join operations t on t.op_id = s.train_op_id
left join operations b on b.op_id = s.backtest_op_id
left join operations a on a.op_id = s.assess_op_id
order by s.designed_at desc
