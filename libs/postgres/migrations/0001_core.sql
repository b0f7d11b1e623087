-- The durable core: cycles, operations, journal, state_events, budgets (DESIGN I1 to I5, I11).
-- Run as the owner. The roles deskbus_orchestrator, deskbus_execution, deskbus_console exist.

create table cycles (
    cycle_id         uuid primary key,
    kind             text not null,
    workflow_version int not null,
    requester        text not null,
    idempotency_key  text not null,
    body_sha256      bytea not null,
    request          bytea not null,           -- the request as JSON, exactly as it was accepted
    as_of            date not null,
    started_on       date not null,            -- UTC day of acceptance: the partition of its rows
    status           text not null,
    reason           text,
    state            bytea not null,           -- the state machine's own JSON, read and written whole
    accepted_at      timestamptz not null,
    deadline_at      timestamptz not null,
    ended_at         timestamptz,
    tokens_max       bigint not null,
    cost_usd_max     numeric(18, 8) not null,
    tokens_spent     bigint not null default 0,
    tokens_reserved  bigint not null default 0,
    cost_usd_spent   numeric(18, 8) not null default 0,
    cost_usd_reserved numeric(18, 8) not null default 0
) with (fillfactor = 70);
create index cycles_running on cycles (deadline_at) where status = 'running';
create index cycles_by_time on cycles (accepted_at desc);

-- A PENDING row is the command's outbox. There is no foreign key to cycles: both are written in one
-- transaction under the cycle's lock, and the check would cost a look-up a row on the hot path.
create table operations (
    op_id        uuid primary key,
    cycle_id     uuid not null,
    started_on   date not null,
    pipeline     text not null,
    account      text not null,
    state        text not null,
    step         text not null,
    service      text not null,
    attempt      int not null,
    as_of        date not null,
    status       text not null,
    claimed      boolean not null,             -- paid or long work: claim, lease and epochs apply
    must_answer  boolean not null,             -- never fails by deadline; sent until it answers
    epoch        int not null default 0,
    command      bytea not null,
    result       bytea,
    failure      jsonb,
    progress     jsonb,
    tokens       bigint not null default 0,
    cost_usd     numeric(18, 8) not null default 0,
    tokens_reserved   bigint not null default 0,
    cost_usd_reserved numeric(18, 8) not null default 0,
    sends        int not null default 1,
    due_at       timestamptz not null,         -- when the sweep looks: next sending, or lease's end
    deadline_at  timestamptz,
    created_at   timestamptz not null,
    started_at   timestamptz,
    finished_at  timestamptz
) with (fillfactor = 70);
create index operations_of_cycle on operations (cycle_id);
create index operations_due on operations (due_at) where status in ('pending', 'running');
create index operations_deadline on operations (deadline_at)
    where status in ('pending', 'running') and not must_answer;
create index operations_memory on operations (account, as_of desc, finished_at desc)
    where step = 'memorize' and status = 'completed';

create table journal (
    started_on  date not null,
    op_id       uuid not null,
    index       int not null,
    epoch       int not null,
    entry       bytea not null,                -- a JournalEntry as JSON
    recorded_at timestamptz not null default clock_timestamp(),
    primary key (started_on, op_id, index)
) partition by range (started_on);
create table journal_rest partition of journal default;

create table state_events (
    started_on  date not null,
    op_id       uuid not null,                 -- an operation, a pipeline, a cycle or an order
    seq         int not null,
    id          bigint generated always as identity,
    xid         xid8 not null default pg_current_xact_id(),
    cycle_id    uuid not null,
    type        text not null,
    owner       text not null,
    pipeline    text,
    state       text,
    session_id  text,
    at          timestamptz not null default clock_timestamp(),
    data        jsonb not null default '{}',
    primary key (started_on, op_id, seq)
) partition by range (started_on);
create table state_events_rest partition of state_events default;
create index state_events_order on state_events (xid, id);
create index state_events_of_cycle on state_events (cycle_id, xid, id);

-- One row: how far the relay has published, in commit-safe order.
create table relay_cursor (
    one  boolean primary key default true check (one),
    xid  xid8 not null default '0',
    id   bigint not null default 0
);
insert into relay_cursor default values;

create table day_budgets (
    day               date primary key,
    tokens_spent      bigint not null default 0,
    tokens_reserved   bigint not null default 0,
    cost_usd_spent    numeric(18, 8) not null default 0,
    cost_usd_reserved numeric(18, 8) not null default 0
);

-- Partitions by month of the cycle's start, so that retention drops whole cycles. Made ahead by the
-- orchestrator through this function, because it owns no tables.
create function ensure_partitions(month date) returns void
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    first date := date_trunc('month', month);
    after date := first + interval '1 month';
    parent text;
begin
    perform pg_advisory_xact_lock(hashtext('deskbus.partitions'));
    foreach parent in array array['journal', 'state_events'] loop
        if to_regclass(format('%I', parent || to_char(first, '_YYYY_MM'))) is null then
            execute format('create table %I partition of %I for values from (%L) to (%L)',
                           parent || to_char(first, '_YYYY_MM'), parent, first, after);
        end if;
    end loop;
end $$;
select ensure_partitions(current_date), ensure_partitions((current_date + interval '1 month')::date);

-- The tree a person sees: cycle -> pipeline's steps -> single calls. Derived, never stored.
create view operation_tree as
select c.cycle_id as op_id, null::uuid as parent_id, c.cycle_id, 'cycle' as type, c.kind as name,
       case c.status when 'rejected' then 'failed' when 'expired' then 'failed' else c.status end
           as status,
       null::text as pipeline, null::text as state, 'orchestrator' as service, 1 as attempt,
       0 as epoch, null::jsonb as progress, c.tokens_spent as tokens, c.cost_usd_spent as cost_usd,
       null::bytea as result, c.reason as error_message,
       c.accepted_at as created_at, c.accepted_at as started_at, c.ended_at as finished_at
from cycles c
union all
select o.op_id, o.cycle_id, o.cycle_id, 'operation', o.step, o.status, o.pipeline, o.state,
       o.service, o.attempt, o.epoch, o.progress, o.tokens, o.cost_usd, o.result,
       o.failure ->> 'message', o.created_at, o.started_at, o.finished_at
from operations o;

revoke all on all tables in schema public from public;
revoke all on function ensure_partitions(date) from public;
grant usage on schema public to deskbus_orchestrator, deskbus_execution, deskbus_console;
grant execute on function ensure_partitions(date) to deskbus_orchestrator;
grant select, insert, update on cycles, operations, day_budgets to deskbus_orchestrator;
grant select, update on relay_cursor to deskbus_orchestrator;
grant select, insert on journal, state_events to deskbus_orchestrator;
grant insert on state_events to deskbus_execution;
-- on conflict do nothing needs to read the key it compares
grant select (started_on, op_id, seq) on state_events to deskbus_execution;
grant select on all tables in schema public to deskbus_console;
alter default privileges in schema public grant select on tables to deskbus_console;
