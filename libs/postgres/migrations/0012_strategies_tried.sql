-- Every strategy that was designed, one row a design of a cycle, and which operation said what of it.
-- A strategy counts as tried once it is trained: from then on somebody has seen what it is worth.
create table strategies (
    cycle_id       uuid not null references cycles,
    name           text not null,
    spec_sha256    text not null check (spec_sha256 ~ '^[0-9a-f]{64}$'),
    as_of          date not null,
    designed_at    timestamptz not null default clock_timestamp(),
    design_op_id   uuid not null,
    train_op_id    uuid,
    backtest_op_id uuid,
    assess_op_id   uuid,
    sharpe_ratio   float8,
    primary key (cycle_id, name)
);
create index strategies_by_name on strategies (name, designed_at desc);
create index strategies_by_time on strategies (designed_at desc);
create index strategies_by_spec on strategies (spec_sha256);
revoke all on strategies from public;
grant select, insert, update on strategies to deskbus_orchestrator;
grant select on strategies to deskbus_console;

-- What was tried before this migration counts too.
insert into strategies (cycle_id, name, spec_sha256, as_of, designed_at, design_op_id)
select o.cycle_id, made.design -> 'spec' ->> 'name', made.design ->> 'spec_sha256', o.as_of,
       o.finished_at, o.op_id
from operations o
cross join lateral (select convert_from(o.result, 'UTF8')::json as design) made
where o.service = 'strategy_design' and o.step = 'design' and o.status = 'completed'
order by o.finished_at
on conflict do nothing;

update strategies s
set train_op_id = o.op_id
from operations o
where o.cycle_id = s.cycle_id and o.step = 'train' and o.status = 'completed'
  and convert_from(o.result, 'UTF8')::json ->> 'strategy_name' = s.name;

update strategies s
set backtest_op_id = o.op_id,
    sharpe_ratio = (convert_from(o.result, 'UTF8')::json ->> 'sharpe_ratio')::float8
from operations o
where o.cycle_id = s.cycle_id and o.step = 'backtest' and o.status = 'completed'
  and convert_from(o.result, 'UTF8')::json ->> 'strategy_name' = s.name;

update strategies s
set assess_op_id = o.op_id
from operations o
where o.cycle_id = s.cycle_id and o.step = 'assess' and o.status = 'completed'
  and convert_from(o.result, 'UTF8')::json ->> 'strategy_name' = s.name;
