-- part: told
-- One event a channel, of those among `ended` that were given up.
told as (
    insert into state_events (started_on, op_id, seq, cycle_id, type, owner, data)
    select (clock_timestamp() at time zone 'utc')::date, id, 0, id, 'notices_given_up', 'orchestrator',
           jsonb_build_object('channel', channel, 'count', count, 'code', code, 'oldest_at', oldest_at)
    from (select gen_random_uuid() as id, channel, count(*), max(error_code) as code,
                 min(event_at) as oldest_at
          from ended where status = 'given_up' and kind is distinct from 'undelivered'
          group by channel) lost
)

-- name: keep_notices
-- The ids of those that have ended before: they are not to be sent again.
with given as (
    select * from unnest($2::uuid[], $3::text[], $4::timestamptz[], $5::timestamptz[])
        as g (event_id, notice, event_at, due_at)
),
kept as (
    insert into notifications (event_id, channel, notice, event_at, due_at)
    select event_id, $1, notice::jsonb, event_at, due_at from given
    on conflict (event_id, channel) do update set due_at = excluded.due_at
    where notifications.status = 'due'
)
select coalesce(array_agg(n.event_id), '{}') from notifications n
where n.channel = $1 and n.event_id = any($2::uuid[]) and n.status <> 'due'

-- name: settle_notices
-- After a try with the code $3, empty where they were sent. The ids of those that have ended now.
with ended as (
    update notifications
    set tries = tries + 1, error_code = $3,
        tried_at = case when $3 = '' then tried_at else coalesce(tried_at, clock_timestamp()) end,
        status = case when $3 = '' then 'sent'
                      when tried_at < clock_timestamp() - $4 * interval '1 second' then 'given_up'
                      else 'due' end,
        ended_at = case when $3 = '' or tried_at < clock_timestamp() - $4 * interval '1 second'
                        then clock_timestamp() end
    where channel = $1 and event_id = any($2::uuid[]) and status = 'due'
    returning event_id, channel, status, error_code, event_at, notice ->> 'kind' as kind
),
{told}
select coalesce(array_agg(event_id) filter (where status <> 'due'), '{}') from ended

-- name: give_up_notices
-- Those of the channel $1, null for all, that were kept a minute before $2: NATS does not hold them any
-- more. Clocks differ by less.
with ended as (
    update notifications
    set status = 'given_up', error_code = $3, ended_at = clock_timestamp()
    where ($1::text is null or channel = $1) and status = 'due' and kept_at < $2::timestamptz - interval '1 minute'
    returning channel, status, error_code, event_at, notice ->> 'kind' as kind
),
{told}
select count(*) from ended

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
