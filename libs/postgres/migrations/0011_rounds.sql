-- Further rounds of a study: what failed for a reason that can pass is asked for again, as another
-- cycle, whose key ends with the round. Cells of rounds before `first_round` no longer count: a path
-- begins anew, in new accounts.
alter table studies add column round int not null default 1;
alter table studies add column first_round int not null default 1;

create or replace view study_cells as
select split_part(c.idempotency_key, '/', 1) as study, split_part(c.idempotency_key, '/', 3)::int as number,
       split_part(c.idempotency_key, '/', 4)::int as sample, c.cycle_id, c.kind, c.as_of, c.status,
       c.reason, c.accepted_at, c.ended_at, c.tokens_max, c.cost_usd_max, c.tokens_spent, c.cost_usd_spent,
       c.unpriced,
       coalesce(nullif(split_part(c.idempotency_key, '/', 5), ''), '1')::int as round
from cycles c where c.requester = 'study';

-- Each cell as it stands: by its newest cycle.
create view study_cells_now as
select distinct on (c.study, c.kind, c.number, c.sample) c.*
from study_cells c join studies s on s.name = c.study
where c.round >= s.first_round
order by c.study, c.kind, c.number, c.sample, c.round desc;
