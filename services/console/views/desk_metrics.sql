-- Figures for whoever scrapes, each from an index; read at every scrape and at no other time.

-- name: cycles_running
select kind, count(*) as cycles from cycles where status = 'running' group by kind

-- name: waiting
-- A person is asked by an operation too, but nothing of it is published.
select count(*) filter (where step <> 'approval' and status = 'pending') as unclaimed,
       coalesce(extract(epoch from clock_timestamp() - min(created_at)
           filter (where step <> 'approval' and status = 'pending')), 0)::float8 as unclaimed_s,
       count(*) filter (where step = 'approval') as approvals
from operations where status in ('pending', 'running')

-- name: unpublished
select greatest(coalesce(extract(epoch from clock_timestamp() - e.at), 0), 0)::float8
from relay_cursor c
left join lateral (
    select at from state_events where (xid, id) > (c.xid, c.id) order by xid, id limit 1
) e on true

-- name: equity
-- The main account first, then the oldest ones.
select a.account, a.currency, s.equity
from (select account, currency, main, opened_at from accounts
      where account not like 'study-%' order by main desc, opened_at limit $1) a
join lateral (
    select equity from snapshots
    where account = a.account and equity is not null order by session desc limit 1
) s on true
order by a.main desc, a.opened_at

-- name: imbalanced
select count(*) from (select 1 from balances group by account having sum(amount) <> 0) wrong

-- name: halts
select count(*) from blocks

-- name: notices
select c.channel, count(n.event_id) as waiting, coalesce(max(n.tries), 0) as failures,
       greatest(coalesce(extract(epoch from clock_timestamp() - min(n.due_at)), 0), 0)::float8
           as overdue_s
from unnest($1::text[]) as c (channel)
left join notifications n on n.channel = c.channel and n.status = 'due'
group by c.channel
