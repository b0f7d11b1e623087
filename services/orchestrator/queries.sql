-- All statements of the orchestrator. One group of inputs is one transaction, and a
-- statement alone is one.
--
-- Open work is `finished_at is null` where a key is known, and `status in ('pending', 'running')`
-- where the sweep looks for it. They say the same. But the second is also what the sweep's small
-- indexes are of, and Postgres would read such an index whole, with all that ended since the last
-- vacuum, rather than look up a key.

-- name: lock_cycles
-- Locks that leave the transaction without an id: it gets one when it writes, after whoever held a
-- cycle before. So the order of transaction ids, by which events are told, is the order of a cycle.
select pg_advisory_xact_lock(key)
from (
    select distinct hashtextextended(cycle_id::text, 0) as key
    from (
        select unnest($1::uuid[]) as cycle_id
        union all select cycle_id from operations where op_id = any($2::uuid[])
    ) wanted
    order by key
) ordered

-- name: load_cycles
-- Each cycle with each operation that an input names or that has not ended; those columns as "op.…".
select c.cycle_id, c.kind, c.workflow_version, c.requester, c.body_sha256, c.request, c.as_of,
       c.started_on, c.status, c.reason, c.state, c.accepted_at, c.data_version, c.tokens_max,
       c.cost_usd_max, c.tokens_spent, c.tokens_reserved, c.cost_usd_spent, c.cost_usd_reserved,
       c.waiting_since is null and c.deadline_at <= (select desk_now()) and not exists (
           select from operations r where r.cycle_id = c.cycle_id and r.status = 'pending'
                                      and r.rests_since is not null) as is_late,
       c.waiting_since is not null as waiting,
       o.op_id as "op.op_id", o.cycle_id as "op.cycle_id", o.started_on as "op.started_on",
       o.pipeline as "op.pipeline", o.state as "op.state", o.step as "op.step",
       o.service as "op.service", o.attempt as "op.attempt", o.status as "op.status",
       o.claimed as "op.claimed", o.must_answer as "op.must_answer", o.epoch as "op.epoch",
       o.tokens as "op.tokens", o.cost_usd as "op.cost_usd",
       o.tokens_reserved as "op.tokens_reserved", o.cost_usd_reserved as "op.cost_usd_reserved",
       o.due_at > (select desk_now()) as "op.lease_live",
       coalesce(o.reserved_on = (now() at time zone 'utc')::date, false) as "op.reserved_today"
from cycles c
left join operations o
    on o.cycle_id = c.cycle_id and (o.finished_at is null or o.op_id = any($2::uuid[]))
where c.cycle_id = any(array(
    select unnest($1::uuid[]) union select cycle_id from operations where op_id = any($2::uuid[])
))

-- name: load_proposals
-- Run under the cycles' locks, so that whoever answers in time is in time when it counts.
select op_id, cycle_id, pipeline, command, result, deadline_at, clock_timestamp() as now,
       deadline_at > (select desk_now()) as in_time
from operations
where cycle_id = any($1::uuid[]) and step = 'approval'
order by pipeline

-- name: load_journal
select j.op_id, j.entry
from unnest($1::date[], $2::uuid[]) as wanted (started_on, op_id)
join journal j using (started_on, op_id)
order by j.op_id, j.index

-- name: load_recorded
select j.op_id, j.index
from unnest($1::date[], $2::uuid[], $3::int[]) as wanted (started_on, op_id, index)
join journal j using (started_on, op_id, index)

-- name: load_for_requests
-- How many live cycles run, what today's budget has left, and who wrote each account's last memory:
-- strictly before as_of, since a cycle's memory knows its fills, which lie at the next open.
select wanted.account, wanted.as_of, memory.op_id,
       (select count(*) from cycles where status = 'running' and requester <> 'study') as running,
       coalesce(today.tokens_spent, 0) as tokens_spent,
       coalesce(today.tokens_reserved, 0) as tokens_reserved,
       coalesce(today.cost_usd_spent, 0) as cost_usd_spent,
       coalesce(today.cost_usd_reserved, 0) as cost_usd_reserved,
       (select count(*) from cycles where kind = 'strategy' and status = 'running')
           as strategies_running
from unnest($1::text[], $2::date[]) as wanted (account, as_of)
left join day_budgets today on today.day = (now() at time zone 'utc')::date
left join lateral (
    select o.op_id from operations o
    where o.account = wanted.account and o.as_of < wanted.as_of
      and o.step = 'memorize' and o.status = 'completed'
    order by o.as_of desc, o.finished_at desc limit 1
) memory on true

-- name: count_proposals
-- How many proposals and previews each of these proposers made in the last hour, and how many of all
-- that it ever made have not ended; each count by its own index,
-- which takes no clock that moves within a statement.
select p.requester,
       (select count(*) from cycles c where c.requester = p.requester
            and c.accepted_at > statement_timestamp() - interval '1 hour') as lately,
       (select count(*) from cycles c where c.requester = p.requester and c.status = 'running') as open
from unnest($1::text[]) as p (requester)

-- name: past_memories
-- The memories of accounts before a date that may speak of outcomes still to be told: from some days
-- before the last one on, which told what was known at its own as_of.
select wanted.account, wanted.as_of, past.result
from unnest($1::text[], $2::date[]) as wanted (account, as_of)
join lateral (
    select max(o.as_of) as as_of from operations o
    where o.account = wanted.account and o.as_of < wanted.as_of
      and o.step = 'memorize' and o.status = 'completed'
) last on true
join operations past on past.account = wanted.account and past.as_of < wanted.as_of
    and past.as_of >= last.as_of - $3::int
    and past.step = 'memorize' and past.status = 'completed'
order by past.as_of, past.finished_at

-- name: load_results
select op_id, result from operations where op_id = any($1::uuid[])

-- name: open_day
insert into day_budgets (day) values ((now() at time zone 'utc')::date) on conflict do nothing

-- name: lock_day
-- `now` is the transaction's begin: the day that is locked is the day that is saved.
select tokens_spent, tokens_reserved, cost_usd_spent, cost_usd_reserved
from day_budgets where day = (now() at time zone 'utc')::date for update

-- name: save_day
update day_budgets
set tokens_spent = $1, tokens_reserved = $2, cost_usd_spent = $3, cost_usd_reserved = $4
where day = (now() at time zone 'utc')::date

-- part: usage
sum(given) as given, sum(made) as made, sum(cache_read) as cache_read, sum(cache_write) as cache_write,
       bool_or(unpriced) as unpriced

-- part: usage_added
set input_tokens = r.input_tokens + u.given, output_tokens = r.output_tokens + u.made,
    cache_read_tokens = r.cache_read_tokens + u.cache_read,
    cache_write_tokens = r.cache_write_tokens + u.cache_write, unpriced = r.unpriced or u.unpriced

-- name: add_usage
-- What calls used by sort, on top of what is there: the rows' locks are held. The whole stands with
-- the rest of each row.
with used as materialized (
    select * from rows($used) as t (op_id uuid, cycle_id uuid, given bigint, made bigint,
          cache_read bigint, cache_write bigint, unpriced bool, of_day bool)
),
of_operations as (
    update operations r {usage_added}
    from (select op_id, {usage} from used group by op_id) u where r.op_id = u.op_id
),
of_cycles as (
    update cycles r {usage_added}
    from (select cycle_id, {usage} from used group by cycle_id) u where r.cycle_id = u.cycle_id
)
update day_budgets r {usage_added}
from (select {usage} from used where of_day) u
where u.given is not null and r.day = (now() at time zone 'utc')::date

-- name: load_paces
-- Locked too: at midnight the day's lock is another one.
select provider, extract(epoch from calls_full_at - now())::float8 as calls_full_in_s,
       extract(epoch from tokens_full_at - now())::float8 as tokens_full_in_s,
       extract(epoch from closed_until - now())::float8 as closed_s
from paces where provider = any($1::text[]) order by provider for update

-- name: save_paces
insert into paces (provider, calls_full_at, tokens_full_at, closed_until)
select provider, now() + calls_s * interval '1 second', now() + tokens_s * interval '1 second',
       now() + closed_s * interval '1 second'
from rows($pace) as t (provider text, calls_s float8, tokens_s float8, closed_s float8)
on conflict (provider) do update
set calls_full_at = excluded.calls_full_at, tokens_full_at = excluded.tokens_full_at,
    closed_until = excluded.closed_until

-- name: write_group
-- What nearly every group writes, in one statement: cycles; ended, new and claimed operations;
-- finished calls; events. It runs under the cycles' locks.
-- A command of a study's cell rests while a live cycle is at work, if it may: the one that begins in
-- this very statement is not seen, and the cell's next command rests instead. Returns what rests, and
-- the time by Postgres' clock, from which all times on record come.
with updated as (
    update cycles c
    set status = t.status, reason = t.reason, state = t.state,
        tokens_spent = t.tokens_spent, tokens_reserved = t.tokens_reserved,
        cost_usd_spent = t.cost_usd_spent, cost_usd_reserved = t.cost_usd_reserved,
        ended_at = case when t.status <> 'running' then clock_timestamp() end,
        -- The clock stands while a person is asked: the limit moves by that time once it is over.
        waiting_since = case when t.waiting then coalesce(c.waiting_since, clock_timestamp()) end,
        waited_s = c.waited_s + case when t.waiting or c.waiting_since is null then 0
            else extract(epoch from clock_timestamp() - c.waiting_since) end,
        deadline_at = c.deadline_at + case when t.waiting or c.waiting_since is null then interval '0'
            else clock_timestamp() - c.waiting_since end
    from rows($changed) as t (cycle_id uuid, status text, reason text, state bytea,
          tokens_spent bigint, tokens_reserved bigint, cost_usd_spent numeric, cost_usd_reserved numeric,
          waiting bool)
    where c.cycle_id = t.cycle_id
),
accepted as (
    insert into cycles (cycle_id, kind, workflow_version, requester, idempotency_key, body_sha256,
                        request, as_of, started_on, status, reason, state, accepted_at, deadline_at,
                        ended_at, tokens_max, cost_usd_max, data_version)
    select cycle_id, kind, workflow_version, requester, idempotency_key, body_sha256,
           request, as_of, started_on, status, reason, state, statement_timestamp(),
           clock_timestamp() + timeout_s * interval '1 second',
           case when status <> 'running' then clock_timestamp() end, tokens_max, cost_usd_max,
           data_version
    from rows($accepted) as t (cycle_id uuid, kind text, workflow_version int, requester text,
          idempotency_key text, body_sha256 bytea, request bytea, as_of date, started_on date,
          status text, reason text, state bytea, timeout_s float8,
          tokens_max bigint, cost_usd_max numeric, data_version text)
),
ended as (
    update operations o
    set status = t.status, result = t.result, failure = t.failure::jsonb,
        tokens = coalesce(t.tokens, o.tokens), cost_usd = coalesce(t.cost_usd, o.cost_usd),
        tokens_reserved = 0, cost_usd_reserved = 0,
        started_at = coalesce(o.started_at, o.created_at), finished_at = clock_timestamp()
    from rows($ended) as t (op_id uuid, status text, result bytea, failure text, tokens bigint,
          cost_usd numeric)
    where o.op_id = t.op_id and o.finished_at is null
),
started as (
    insert into operations (op_id, cycle_id, started_on, pipeline, account, state, step, service,
                            attempt, as_of, status, claimed, must_answer, command, due_at, deadline_at,
                            created_at, rests_since, epoch, started_at)
    select op_id, cycle_id, started_on, pipeline, account, state, step, service, attempt, as_of,
           case when epoch = 0 then 'pending' else 'running' end,
           claimed, must_answer, command,
           case when rests then 'infinity'
                else coalesce(clock_timestamp() + due_in_s * interval '1 second', 'infinity') end,
           case when not must_answer then clock_timestamp() + limit_s * interval '1 second' end,
           clock_timestamp(), case when rests then clock_timestamp() end,
           epoch, case when epoch > 0 then clock_timestamp() end
    from rows($started) as t (op_id uuid, cycle_id uuid, started_on date, pipeline text, account text,
          state text, step text, service text, attempt int, as_of date, claimed bool,
          must_answer bool, command bytea, due_in_s float8, limit_s float8, may_rest bool, epoch int),
         lateral (select may_rest and (select live_at_work()) > 0 as rests) r
    returning op_id, rests_since
),
told as (
    insert into state_events (started_on, op_id, seq, cycle_id, type, owner, pipeline, state,
                              session_id, data)
    select t.started_on, t.op_id, t.seq, t.cycle_id, t.type, 'orchestrator', t.pipeline, t.state,
           t.session_id, t.data::jsonb
    from rows($event) as t (started_on date, op_id uuid, seq int, cycle_id uuid, type text,
          pipeline text, state text, session_id text, data text)
    on conflict do nothing
),
touched as (
    update operations o
    set status = 'running', epoch = t.epoch, tokens = t.tokens, cost_usd = t.cost_usd,
        tokens_reserved = t.tokens_reserved, cost_usd_reserved = t.cost_usd_reserved,
        reserved_on = case when t.reserved_today then (now() at time zone 'utc')::date
                           else o.reserved_on end,
        progress = coalesce(t.progress::jsonb, o.progress),
        started_at = coalesce(o.started_at, clock_timestamp()),
        due_at = clock_timestamp() + t.lease_s * interval '1 second'
    from rows($touched) as t (op_id uuid, epoch int, tokens bigint, cost_usd numeric,
          tokens_reserved bigint, cost_usd_reserved numeric, reserved_today bool, progress text,
          lease_s float8)
    where o.op_id = t.op_id and o.finished_at is null
),
called as (
    insert into journal (started_on, op_id, index, epoch, entry)
    select * from rows($called) as t (started_on date, op_id uuid, index int, epoch int, entry bytea)
)
select array(select op_id from started where rests_since is not null) as resting, statement_timestamp() as at

-- name: keep_texts
-- Last in its transaction, and in the order of the keys: whoever writes the same text waits for the
-- commit of the one before, who waits for nothing any more.
insert into prompt_texts (started_on, sha256, text)
select * from rows($text) as t (started_on date, sha256 bytea, text text)
on conflict do nothing

-- name: due_operations
-- Work that may be lost: unanswered commands, and claims whose lease ran out. Waiting doubles.
-- A lost claim is pending again: due_at now says when to send next, no longer that somebody has it.
-- Whoever runs beside an operation that kills its process is lost with it, time and again. So before
-- the last claim, from epoch $4 on, a service's suspects are sent one at a time: the poison dies
-- alone, and the others end. (False sorts first: a suspect that is not due yet is still at work.)
update operations o
set sends = o.sends + 1, status = 'pending',
    due_at = clock_timestamp() + least($2 * power(2, least(o.sends, 20)), $3) * interval '1 second'
from (
    select op_id from operations o
    where status in ('pending', 'running') and due_at <= (select desk_now())
      and (epoch < $4 or op_id = (
          select suspect.op_id from operations suspect
          where suspect.service = o.service and suspect.epoch >= $4
            and suspect.status in ('pending', 'running')
          order by suspect.due_at <= (select desk_now()), suspect.due_at, suspect.op_id limit 1
      ))
    order by due_at limit $1
    for update skip locked
) lost
where o.op_id = lost.op_id
returning o.op_id, o.cycle_id, o.service, o.step, o.command, o.sends, o.must_answer

-- name: send_again
-- A person wants a command sent now. As the sweep does: only `sends` and `due_at` change, and what
-- is left to the sweep stays with it (a live claim, a suspect of poison). An approval's is never sent:
-- a person answers it.
update operations
set sends = sends + 1, due_at = clock_timestamp() + $2 * interval '1 second'
where op_id = $1 and status = 'pending' and epoch < $3 and octet_length(command) <= $4
  and step <> 'approval'
returning op_id, cycle_id, started_on, service, step, command, sends

-- name: operation_of_letter
select op_id, cycle_id, started_on, service, step, status, epoch, octet_length(command) as bytes
from operations where op_id = $1

-- name: tell_of_letter
insert into state_events (started_on, op_id, seq, cycle_id, type, owner, data)
values ($1, $2, $3, $4, $5, 'orchestrator', $6::jsonb)
on conflict do nothing

-- name: overdue_operations
select op_id, progress ->> 'step' as last_step from operations
where status in ('pending', 'running') and not must_answer and deadline_at <= (select desk_now())
  and rests_since is null
order by deadline_at limit $1

-- name: overdue_cycles
select cycle_id from cycles c
where status = 'running' and waiting_since is null and deadline_at <= (select desk_now())
  and not exists (select from operations o where o.cycle_id = c.cycle_id and o.status = 'pending'
                                             and o.rests_since is not null)
order by deadline_at limit $1

-- name: beat
-- What is due is compared with desk_now(), which stands at stands_at; what is written counts from
-- clock_timestamp(), and only rows from before an outage are given its time. Returns the time and the
-- number of the beat where the clock goes on; nothing after an outage, and where Postgres' clock has
-- jumped.
update desk_clock
set beat_at = clock_timestamp(), stands_at = clock_timestamp() + $1 * interval '1 second',
    beats = beats + 1
where clock_timestamp() between beat_at - interval '1 second' and stands_at
returning beat_at, beats

-- name: rest_clock
-- While nothing runs no limit does: the clock goes on until the next beat, as before the first one.
update desk_clock set stands_at = 'infinity'
where clock_timestamp() between beat_at - interval '1 second' and stands_at
      and not exists (select from cycles where status = 'running')

-- name: lock_clock
select not clock_timestamp() between beat_at - interval '1 second' and stands_at
from desk_clock for update

-- name: running_cycles
select cycle_id from cycles where status = 'running'

-- name: give_time_back
-- Under the locks of the clock and of the cycles. Ahead of stands_at: the time that was lost, or a
-- clock that jumped ahead, is given to all that runs. Behind beat_at the clock jumped back, and all is
-- moved back with it. A cycle that waits for a person has a clock that stands already. What was written
-- since ($1 s at most) knows the new time: nothing is due later than in $2 s, and after a jump back
-- what is due sooner, or was made just now, stays as it is.
with clock as materialized (select clock_timestamp() as at),
stood as materialized (
    select since_at, at as until_at, at - since_at as by, at < since_at as is_back
    from desk_clock, clock,
         lateral (select case when at > stands_at then stands_at else beat_at end as since_at) d
),
of_cycles as (
    update cycles c
    set deadline_at = c.deadline_at + s.by,
        waited_s = c.waited_s + greatest(extract(epoch from s.by), 0)
    from stood s
    where c.status = 'running' and c.waiting_since is null
          and not (s.is_back and exists (
              select from operations o where o.cycle_id = c.cycle_id
              having min(o.created_at) between s.until_at - $1 * interval '1 second' and s.until_at))
),
of_operations as (
    update operations o
    set due_at = case
            when o.due_at = 'infinity'
                 or s.is_back and o.due_at <= s.until_at + $2 * interval '1 second' then o.due_at
            else least(o.due_at + s.by, s.until_at + $2 * interval '1 second') end,
        deadline_at = case
            when s.is_back
                 and o.created_at between s.until_at - $1 * interval '1 second' and s.until_at
            then o.deadline_at else o.deadline_at + s.by end,
        rests_since = o.rests_since + s.by
    from stood s where o.status in ('pending', 'running')
),
of_paces as (
    update paces
    set calls_full_at = calls_full_at + s.by, tokens_full_at = tokens_full_at + s.by,
        closed_until = closed_until + s.by
    from stood s where s.is_back
),
on_record as (
    insert into outages (since_at, until_at) select since_at, until_at from stood where not is_back
)
update desk_clock
set beat_at = s.until_at, stands_at = s.until_at + $1 * interval '1 second', beats = beats + 1
from stood s
returning s.since_at, s.until_at, beats

-- name: tell_outage
insert into state_events (started_on, op_id, seq, cycle_id, type, owner, data)
values ($1, $2, 0, $2, 'outage_ended', 'orchestrator', $3::jsonb)
on conflict do nothing

-- name: unpublished_events
-- Those that are not final come last: behind a transaction that still runs, whose own may come first.
select e.xid, e.id, e.op_id, e.seq, e.cycle_id, e.type, e.owner, e.pipeline, e.state, e.session_id,
       e.at, e.data, e.xid < pg_snapshot_xmin(pg_current_snapshot()) as is_final
from state_events e
where (e.xid, e.id) > ($2, $3)
order by e.xid, e.id
limit $1

-- name: read_cursor
select xid, id from relay_cursor

-- name: move_cursor
update relay_cursor set xid = $1, id = $2

-- name: keep_part
-- The same bytes again are as if they were new, so that retention does not take them from a cycle
-- that has just made them once more.
insert into bodies (sha256, part, parts, bytes) values ($1, $2, $3, $4)
on conflict (sha256, part) do update set kept_at = clock_timestamp()

-- name: body_part
select parts, bytes from bodies where sha256 = $1 and part = $2
