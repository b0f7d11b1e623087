-- Messages to people: what is due to which channel, and what became of it. The orchestrator writes
-- them for the notifier, which has no database.

-- One row a channel that was ever set. What is waiting is sent in order, so a failure is the
-- channel's: nothing of it is tried before `next_try_at`.
create table notice_channels (
    channel     text primary key,
    since       timestamptz not null default clock_timestamp(),    -- told of what happens from here on
    waiting     bigint not null default 0 check (waiting >= 0),
    sent        bigint not null default 0,
    given_up    bigint not null default 0,
    failures    int not null default 0,        -- tries in a row that came to nothing
    failing_since timestamptz,                 -- the first of them
    error_code  text not null default '',      -- of the last one
    sent_at     timestamptz,
    failed_at   timestamptz,
    next_try_at timestamptz
);

create table notifications (
    event_id   uuid not null,
    channel    text not null references notice_channels,
    number     bigint generated always as identity,    -- the order of sending, alarms first
    notice     jsonb not null,                 -- a Notice, as it was composed
    is_alarm   boolean generated always as (coalesce(notice ->> 'severity' = 'alarm', false)) stored,
    gathered   boolean not null,               -- in one message with the others that are due then
    event_at   timestamptz not null,
    due_at     timestamptz not null,
    status     text not null default 'due' check (status in ('due', 'sent', 'given_up')),
    tries      int not null default 0,
    error_code text not null default '',
    ended_at   timestamptz,
    primary key (event_id, channel),
    check ((status = 'due') = (ended_at is null))
);
create index notifications_next on notifications (channel, is_alarm desc, number) where status = 'due';
create index notifications_due on notifications (channel, due_at) where status = 'due';
create index notifications_by_number on notifications (number desc);
create index notifications_ended on notifications (ended_at) where status <> 'due';

-- Of all notifiers that run, the one that works; its epoch fences those before it.
create table notifier_lease (
    one      boolean primary key default true check (one),
    holder   text not null default '',
    epoch    bigint not null default 0,
    until_at timestamptz not null default '-infinity',
    released boolean not null default true
);
insert into notifier_lease default values;

-- Up to which dead letter all are told as events; null before the first look.
create table letter_cursor (
    one      boolean primary key default true check (one),
    sequence bigint
);
insert into letter_cursor default values;

grant select, insert, update on notice_channels to deskbus_orchestrator;
grant select, insert, update, delete on notifications to deskbus_orchestrator;
grant select, update on notifier_lease, letter_cursor to deskbus_orchestrator;
