-- Studies: parents of decision cycles. `body` is the file as it was accepted, as JSON; `next_cell` is
-- how many of its cells were asked for, in order.
create table studies (
    study_id   uuid primary key,
    name       text not null unique,
    sha256     text not null,
    body       bytea not null,
    offline    boolean not null default false,
    status     text not null default 'running' check (status in ('running', 'stopped', 'completed')),
    reason     text not null default '',
    cells      int not null,
    next_cell  int not null default 0,
    refused    int not null default 0,         -- cells that the desk would not begin, and why the first
    refusal    text not null default '',
    started_at timestamptz not null default clock_timestamp(),
    ended_at   timestamptz
);

-- Their cells are the cycles that `study` asked for, under keys that begin with the study's name.
create index cycles_of_study on cycles (split_part(idempotency_key, '/', 1), accepted_at)
    where requester = 'study';
create view study_cells as
select split_part(c.idempotency_key, '/', 1) as study, split_part(c.idempotency_key, '/', 3)::int as number,
       split_part(c.idempotency_key, '/', 4)::int as sample, c.cycle_id, c.kind, c.as_of, c.status,
       c.reason, c.accepted_at, c.ended_at, c.tokens_max, c.cost_usd_max, c.tokens_spent, c.cost_usd_spent,
       c.unpriced
from cycles c where c.requester = 'study';

-- Answers of models that a study has paid for, by what was asked of whom: never paid again.
create table study_answers (
    address bytea primary key,
    reply   bytea not null,                    -- as JSON, as the journal has it
    op_id   uuid not null,                     -- whose call it was
    index   int not null,
    kept_at timestamptz not null default clock_timestamp()
);

grant select, insert, update on studies to deskbus_orchestrator;
grant select, insert on study_answers to deskbus_orchestrator;
grant select on study_cells to deskbus_orchestrator;
