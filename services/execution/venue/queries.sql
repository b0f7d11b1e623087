-- What is for a broker, and what is known of it.

-- name: bound_accounts
select account, venue, venue_account, clock, opened_on from accounts where venue is not null
order by account

-- name: bound_account
select account, venue, venue_account, clock, opened_on from accounts where account = $1

-- name: live
-- What is not over, oldest first.
select * from venue_orders where account = $1 and state in ('intent', 'sent', 'known')
order by placed_at, order_id

-- name: lock_live
select * from venue_orders where account = $1 and state in ('intent', 'sent', 'known')
order by placed_at, order_id for update

-- name: by_id
select * from venue_orders where order_id = any($1::uuid[])

-- name: lock_by_id
select * from venue_orders where order_id = any($1::uuid[]) order by order_id for update

-- name: lease
-- Whoever holds it may be sending the order until it is over: nobody else begins before.
update venue_orders set lease_until = clock_timestamp() + make_interval(secs => $2)
where order_id = $1 and state in ('intent', 'sent') and cancel = ''
  and (lease_until is null or lease_until <= clock_timestamp())
returning *

-- name: take
-- From here on it may be at the broker.
update venue_orders set state = 'sent', tries = tries + 1, sent_at = coalesce(sent_at, $2)
where order_id = $1 and state in ('intent', 'sent') and cancel = ''
returning *

-- name: tell
update venue_orders set state = $2, status = $3, filled = $4, words = $5, broker_id = $6,
       lease_until = null
where order_id = $1

-- name: want_cancel
update venue_orders set cancel = $2 where order_id = any($1::uuid[]) and cancel = ''
  and state in ('intent', 'sent', 'known')

-- name: live_buys
-- Of one account, or (null) of all.
select * from venue_orders where side = 'buy' and state in ('intent', 'sent', 'known')
  and ($1::text is null or account = $1)

-- name: told
update venue_orders set told_at = $2 where order_id = $1

-- name: entry_keys
select key from entries where account = $1 and key = any($2::text[])

-- name: booked
select order_id, sum(quantity) as quantity from fills where order_id = any($1::uuid[])
group by order_id

-- name: rounding
-- What the broker's cash is above the ledger's because each fill and move is posted in whole cents:
-- since a person took over the broker's cash, which had those of before in it.
with exact as (
    select f.entry_id, case o.side when 'buy' then -f.price * f.quantity else f.price * f.quantity end
           as amount
    from fills f join orders o using (order_id) where o.account = $1
    union all
    select e.entry_id, v.amount
    from venue_moves v join entries e on e.account = v.account and e.key = 'move/' || v.move_id
    where v.account = $1 and v.booked
)
select coalesce(sum(exact.amount - p.amount), 0) from exact join postings p using (entry_id)
where p.book = 'cash' and entry_id > coalesce((
    select max(entry_id) from entries where account = $1 and key like 'reconciled/%'
), 0)

-- name: seen_moves
select move_id from venue_moves where account = $1 and move_id = any($2::text[])

-- name: insert_move
insert into venue_moves (account, move_id, cause, amount, ticker, booked)
values ($1, $2, $3, $4, $5, $6)

-- name: insert_look
insert into looks (account, at, verdict, blocks, cash, positions, differences, note, by_whom, reason)
values ($1, $2, $3, $4, $5, $6::text::jsonb, $7::text::jsonb, $8, $9, $10)
returning number, kept_at

-- name: newest_look
select at, verdict, blocks, differences::text, note, positions::text, cash from looks
where account = $1 order by number desc limit 1

-- name: newest_answer
select at, verdict, blocks, differences::text, note, positions::text, cash from looks
where account = $1 and verdict <> 'unknown' order by number desc limit 1

-- name: reconciled_at
select max(at) from looks where account = $1 and by_whom <> 'execution'

-- name: split_keys
select key from entries where account = $1 and kind = 'split'

-- name: dividends_paid
select ticker, at from venue_moves where account = $1 and cause = 'dividend'

-- name: owners
-- The client ids of the desk's orders, by the broker's.
select broker_id, order_id::text as client_id from venue_orders where broker_id = any($1::text[])

-- name: newest
select * from venue_orders
where ($1::text is null or account = $1) and (not $2 or state in ('intent', 'sent', 'known'))
order by placed_at desc, order_id limit $3

-- name: life
select at, state, status, filled, words from venue_order_changes where order_id = $1
order by number limit $2

-- name: order_of
select cycle_id, started_on from orders where order_id = $1

-- name: insert_order_event
insert into state_events (started_on, op_id, seq, cycle_id, type, owner, at, data)
values ($1, $2, 0, $3, $4, 'execution', $5, $6::text::jsonb)
on conflict do nothing
