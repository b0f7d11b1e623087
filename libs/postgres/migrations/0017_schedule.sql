-- The schedule. One row a job, whose lock decides which orchestrator looks for its slots; one row a
-- slot, so that each runs once, whoever looks and however often.

create table schedule_jobs (
    job           text primary key,
    looked_until  timestamptz not null,        -- slots up to here have rows, or were missed
    paused_at     timestamptz,
    paused_by     text not null default '',
    paused_reason text not null default ''
);

create table schedule_slots (
    job      text not null,
    slot     timestamptz not null,
    session  date not null,
    as_of    date not null,
    accounts text[] not null,                  -- those that its cycle may trade
    request  bytea not null,                   -- what is asked for, as JSON, exactly as it is sent
    outcome  text not null check (outcome in ('due', 'accepted', 'rejected', 'skipped')),
    late     boolean not null,                 -- made up for: its accounts wait until it has ended
    missed   int not null default 0,           -- earlier slots that never ran
    by_whom  text not null default '',         -- empty: the clock
    cycle_id uuid,
    reason   text not null default '',
    made_at  timestamptz not null default clock_timestamp(),
    primary key (job, slot)
);
create index schedule_slots_due on schedule_slots (slot) where outcome = 'due';
create index schedule_slots_late on schedule_slots (slot) where late and outcome = 'accepted';

revoke all on schedule_jobs, schedule_slots from public;
grant select, insert, update on schedule_jobs, schedule_slots to deskbus_orchestrator;
grant select on schedule_jobs, schedule_slots to deskbus_console;
