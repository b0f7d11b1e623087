-- name: know_channels
-- Where the clock has jumped back since, a channel is told of what happens from here on: of what
-- comes until the clock is there again it would be told nothing.
insert into notice_channels (channel) select unnest($1::text[])
on conflict (channel) do update set since = clock_timestamp()
where notice_channels.since > clock_timestamp()

-- name: take_lease
-- Asked by its holder it is renewed; by another it is taken once it has run out or was given back, or
-- where it still ends at $3: for as long as a lease lasts it was not renewed, whatever the clock says.
with before as materialized (select * from notifier_lease for update)
update notifier_lease l
set holder = $1, until_at = clock_timestamp() + $2 * interval '1 second', released = false,
    epoch = case when before.holder = $1 and not before.released then before.epoch
                 else before.epoch + 1 end
from before
where before.released or before.holder = $1 or before.until_at < clock_timestamp()
      or before.until_at = $3
returning l.epoch

-- name: lease_end
select until_at from notifier_lease

-- name: give_lease_back
update notifier_lease set released = true, until_at = clock_timestamp() where holder = $1

-- name: hold_lease
-- Whether the epoch is the one that counts, until this transaction ends.
select true from notifier_lease where epoch = $1 and not released for share

-- name: keep_notices
-- Of events from before a channel was set nothing is due to it. In the order given.
with given as (
    select * from unnest($1::uuid[], $2::text[], $3::text[], $4::bool[], $5::timestamptz[],
                         $6::timestamptz[])
        with ordinality as g (event_id, channel, notice, gathered, event_at, due_at, place)
),
kept as (
    insert into notifications (event_id, channel, notice, gathered, event_at, due_at)
    select g.event_id, g.channel, g.notice::jsonb, g.gathered, g.event_at, g.due_at
    from given g join notice_channels c using (channel)
    where g.event_at >= c.since
    order by g.place
    on conflict do nothing
    returning channel
),
counted as (select channel, count(*) as notices from kept group by channel),
channels as (
    update notice_channels c set waiting = c.waiting + counted.notices
    from counted where c.channel = counted.channel
)
select coalesce(sum(notices), 0)::int from counted

-- name: settle_notices
-- What was sent is sent, whoever says so; what had ended before stays as it is.
with given as (
    select * from unnest($2::uuid[], $3::text[], $4::text[]) as g (event_id, status, error_code)
),
ended as (
    update notifications n
    set status = g.status, ended_at = clock_timestamp(),
        tries = n.tries + (g.status = 'sent')::int,
        error_code = case when g.status = 'sent' then ''
                     else coalesce(nullif(g.error_code, ''), nullif(n.error_code, ''), c.error_code)
                     end
    from given g, notice_channels c
    where c.channel = $1 and n.event_id = g.event_id and n.channel = $1 and n.status = 'due'
    returning n.status, n.notice ->> 'kind' as kind, n.error_code, n.event_at
),
counted as (
    select count(*) as notices, count(*) filter (where status = 'sent') as sent from ended
),
channel as (
    update notice_channels c
    set waiting = greatest(c.waiting - notices, 0), sent = c.sent + counted.sent,
        given_up = c.given_up + notices - counted.sent,
        sent_at = case when counted.sent > 0 then clock_timestamp() else c.sent_at end,
        failures = case when counted.sent > 0 then 0 else c.failures end,
        failing_since = case when counted.sent > 0 then null else c.failing_since end,
        error_code = case when counted.sent > 0 then '' else c.error_code end,
        next_try_at = case when counted.sent > 0 then null else c.next_try_at end
    from counted where c.channel = $1 and notices > 0
)
select count(*)::int as given_up, min(event_at) as oldest_at, max(error_code) as error_code
from ended where status = 'given_up' and kind is distinct from 'undelivered'

-- name: try_failed
with channel as (
    update notice_channels
    set failures = failures + 1, error_code = $2, failed_at = clock_timestamp(),
        failing_since = coalesce(failing_since, clock_timestamp()),
        next_try_at = clock_timestamp() + $3 * interval '1 second'
    where channel = $1
)
update notifications set tries = tries + 1, error_code = $2
where channel = $1 and event_id = any($4::uuid[]) and status = 'due'

-- name: hold_notices
update notifications set due_at = greatest(due_at, $3)
where channel = $1 and event_id = any($2::uuid[]) and status = 'due'

-- name: next_notices
-- What lies in the future was so before the clock jumped back: an event's own time has come, and a
-- failure that is to come is not waited for. The channel is looked at once, not for each notice.
-- Alarms go before all others, so that none waits behind thousands.
select n.event_id, n.notice::text as notice, n.due_at, n.gathered, n.tries
from notifications n
where n.channel = $1 and n.status = 'due'
      and n.due_at <= greatest(clock_timestamp(), n.event_at)
      and (select coalesce(next_try_at <= clock_timestamp(), true) or failed_at > clock_timestamp()
           from notice_channels where channel = $1)
order by n.is_alarm desc, n.number limit $2

-- name: channel_now
select clock_timestamp() as now, c.waiting, c.failures, c.failing_since,
       extract(epoch from (select min(due_at) from notifications n
                           where n.channel = $1 and n.status = 'due') - clock_timestamp())::float8
           as due_in_s,
       coalesce(extract(epoch from c.next_try_at - clock_timestamp()), 0)::float8 as try_in_s
from notice_channels c where c.channel = $1

-- name: tell_given_up
insert into state_events (started_on, op_id, seq, cycle_id, type, owner, data)
values ((clock_timestamp() at time zone 'utc')::date, $1, 0, $1, 'notices_given_up', 'orchestrator',
        $2::jsonb)
on conflict do nothing

-- name: stale_notices
-- No channel may be waited for so long: it is not set any more, or nobody runs who would send.
select channel, array_agg(event_id) as event_ids
from (select channel, event_id from notifications
      where status = 'due' and due_at < clock_timestamp() - $1 * interval '1 second'
      order by number limit $2) stale
group by channel

-- name: forget_notices
delete from notifications
where (event_id, channel) in (
    select event_id, channel from notifications
    where status <> 'due' and ended_at < clock_timestamp() - $1 * interval '1 second'
    limit $2)

-- name: read_letter_cursor
select sequence from letter_cursor

-- name: move_letter_cursor
update letter_cursor set sequence = $1

-- name: tell_letter_kept
insert into state_events (started_on, op_id, seq, cycle_id, type, owner, data)
values ($3, $1, 1, $1, 'letter_kept', 'orchestrator', $2::jsonb)
on conflict do nothing

-- name: read_notice_stream
select notices_made_at as made_at, notices_number as number from relay_cursor

-- name: know_notice_stream
update relay_cursor set notices_made_at = $1, notices_number = $2

-- name: lost_notices
-- Newest first. Rare: it reads all events of that time.
with heard as (
    select least(max(event_at), clock_timestamp()) - $5 * interval '1 second' as until_at
    from notifications
),
since as (
    select greatest(until_at, clock_timestamp() - $4 * interval '1 second') as at from heard
)
select e.xid, e.id, e.op_id, e.seq, e.cycle_id, e.type, e.owner, e.pipeline, e.state, e.session_id,
       e.at, e.data,
       (select count(*) from state_events b
        where b.cycle_id = e.cycle_id and (b.xid, b.id) <= (e.xid, e.id)) as sequence
from state_events e, since
where e.type = any($1::text[]) and (e.xid, e.id) <= ($2, $3) and e.at >= since.at
order by e.xid desc, e.id desc
limit $6
