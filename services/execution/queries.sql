-- What execution asks of the ledger. Amounts are in the account's currency.

-- part: order_filled
-- Orders with what they were filled at: of fills in part the sum.
select o.*, a.currency as into, f.price as fill_price, f.quantity as fill_quantity,
       f.fee as fill_fee, f.session as fill_session, f.currency as fill_currency,
       f.foreign_price as fill_foreign_price, f.rate as fill_rate, f.rate_on as fill_rate_on,
       f.foreign_fee as fill_foreign_fee, v.terms::text as terms
from orders o join accounts a using (account) left join venue_orders v using (order_id)
left join lateral (
    select round(sum(price * quantity) / sum(quantity), 6) as price, sum(quantity) as quantity,
           sum(fee) as fee, max(session) as session, max(currency) as currency,
           max(foreign_price) as foreign_price, max(rate) as rate, max(rate_on) as rate_on,
           sum(foreign_fee) as foreign_fee
    from fills where order_id = o.order_id having count(*) > 0
) f on true

-- name: command_on_record
select account, ended, command_sha256, budget::text as budget,
       constraints::text as constraints, asked, approval
from commands_on_record where op_id = $1

-- name: insert_account
insert into accounts (account, currency, clock, starting_cash, limits, opened_on, venue,
                      venue_account)
values ($1, $2, $3, $4, $5::text::jsonb, $3, $6, $7)
on conflict do nothing

-- name: lock_account
select account, currency, clock, opened_on, limits_of(account)::text as limits, venue,
       venue_account
from accounts where account = $1 for update

-- name: read_account
select account, currency, clock, opened_on, limits_of(account)::text as limits, venue,
       venue_account
from accounts where account = $1

-- name: newest_look
-- The newest one that had an answer.
select at, verdict, positions::text, differences::text from looks
where account = $1 and verdict <> 'unknown' order by number desc limit 1

-- name: clock_of
select clock from accounts where account = $1

-- name: is_bound
select is_bound($1)

-- name: hold_halts
select hold_halts()

-- name: lock_halts
select change_halts()

-- name: halts
select account, reason, by_whom, at from blocks order by account nulls first

-- name: is_halted
select exists (select from halts where account is not distinct from $1)

-- name: halt_of
-- The halt of all accounts first.
select account, reason, by_whom, at from blocks
where account is null or account = $1 order by account nulls first limit 1

-- name: insert_halt_change
insert into halt_changes (account, halted, reason, by_whom) values ($1, $2, $3, $4)
returning change_id, at

-- name: insert_own_event
-- Of what no cycle has caused.
insert into state_events (started_on, op_id, seq, cycle_id, type, owner, at, data)
values ($1, $2, 0, $2, $3, 'execution', $4, $5::text::jsonb)
on conflict do nothing

-- name: account_names
select account from accounts where account not like 'study-%' order by opened_at limit 21

-- name: keep_limits
insert into limit_changes (account, limits) values ($1, $2::text::jsonb)

-- name: snapshots_around
-- The newest snapshot's session, the newest snapshot before $2, and the closes of the newest one
-- at or before $2.
select (select max(session) from snapshots where account = $1) as newest, b.session, b.equity,
       coalesce(b.paid_in, (select starting_cash from accounts where account = $1)) as paid_in,
       c.session as closes_of, c.closes::text
from (select) one left join lateral (
    select session, equity, paid_in from snapshots where account = $1 and session < $2
    order by session desc limit 1
) b on true left join lateral (
    select session, closes from snapshots where account = $1 and session <= $2
    order by session desc limit 1
) c on true

-- name: insert_snapshot
insert into snapshots (account, session, cash, positions, equity, realised, unrealised, dividends,
                       fees, exposure_gross, exposure_net, unpriced, stops, closes,
                       paid_in)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13::text::jsonb, $14::text::jsonb,
        $15)

-- name: balances
select book, ticker, amount, quantity, currency, foreign_amount, opened_on from balances
where account = $1

-- name: recent_lines
select e.entry_id, e.key, e.kind, e.session, e.ticker as about, e.memo,
       p.book, p.amount, p.ticker, p.quantity, p.currency, p.foreign_amount
from entries e join postings p using (entry_id)
where e.account = $1 and e.session > $2
order by e.entry_id, p.line

-- name: open_orders
-- Open at the close of $2: still working, or filled at a later session. As a market order fills at
-- the session after its own, the latter are those of $2 itself.
{order_filled}
where o.account = $1
  and ((o.status = 'working' and o.as_of <= $2)
       or (o.status = 'filled' and o.as_of = $2 and o.type = 'market')
       or (o.type = 'stop' and o.as_of <= $2 and (o.status = 'waiting' or f.session > $2)))
order by o.as_of, o.side desc, o.ticker, o.type, o.order_id

-- name: orders_by_id
{order_filled}
where o.order_id = any ($1::uuid[])

-- name: acted_exits
-- The exits decided up to $2 of the tickers $3, each of its position only: since its session of $4.
select o.ticker, o.as_of, o.exit_rules, o.exit_month, o.exit_held, o.exit_asked,
       f.quantity as sold, f.session as sold_on
from unnest($3::text[], $4::date[]) as h (ticker, opened_on)
join orders o on o.ticker = h.ticker and o.as_of >= h.opened_on
left join lateral (
    select sum(quantity) as quantity, max(session) as session
    from fills where order_id = o.order_id having count(*) > 0
) f on true
where o.account = $1 and o.exit_rules is not null and o.as_of <= $2
order by o.as_of, o.placed_at, o.ticker

-- name: splits_since
-- The shares of the tickers $2 before and after each split that came after session $3.
select e.ticker, e.session, p.quantity as more,
       (select sum(q.quantity) from postings q join entries b using (entry_id)
        where q.account = $1 and q.ticker = e.ticker and b.session < e.session) as before
from entries e join postings p using (entry_id)
where e.account = $1 and e.kind = 'split' and e.ticker = any ($2::text[]) and e.session > $3
  and p.book = 'position'
order by e.session

-- name: newest_actions
-- Of each of the tickers $2 the session of its newest split and of its newest dividend up to $3.
select ticker, kind, max(session) as session from entries
where account = $1 and kind in ('split', 'dividend') and ticker = any ($2::text[])
  and session <= $3
group by ticker, kind

-- name: last_sales
-- Of each ticker the newest session, after $2 and up to $3, at which something of it was sold.
select e.ticker, max(e.session) as sold_on
from entries e join postings p using (entry_id)
where e.account = $1 and e.kind = 'fill' and e.session > $2 and e.session <= $3
  and p.book = 'position' and p.quantity < 0
group by e.ticker
order by e.ticker

-- name: sectors
-- As the source had them when each was ordered last, or brought in, and it had one.
select distinct on (ticker) ticker, sector from (
    select ticker, sector, placed_at as at from orders
    where account = $1 and ticker = any ($2::text[]) and sector <> 'unknown'
    union all
    select ticker, sector, at from entries
    where account = $1 and ticker = any ($2::text[]) and sector is not null
) known
order by ticker, at desc

-- name: plans
-- Of the newest buy of each ticker that was filled by $2.
select distinct on (o.ticker) o.ticker, o.plan, o.thesis, o.cycle_id, f.session
from orders o join fills f using (order_id)
where o.account = $1 and o.ticker = any ($3::text[]) and o.side = 'buy' and o.plan is not null
  and f.session <= $2
order by o.ticker, f.session desc, o.placed_at desc

-- name: move_clock
update accounts set clock = $2 where account = $1 and clock < $2

-- name: insert_order
insert into orders (order_id, account, cycle_id, started_on, op_id, pipeline, ticker, sector, side,
                    type, quantity, hold, status, reason, as_of, stop_price, exit, exit_rules,
                    exit_month, exit_held, exit_asked, plan, thesis, currency, foreign_price, rate,
                    rate_on)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
        $21, $22::text::jsonb, $23, $24, $25, $26, $27)

-- name: update_order
update orders set status = $2, quantity = $3, reason = $4, stop_price = $5 where order_id = $1

-- name: insert_entry
with entry as (
    insert into entries (account, key, kind, session, ticker, memo, sector)
    values ($1, $2, $3, $4, $5, $6, $7)
    returning entry_id
)
insert into postings (entry_id, line, account, book, ticker, amount, quantity, currency,
                      foreign_amount)
select entry.entry_id, l.line, $1, l.book, l.ticker, l.amount, l.quantity, l.currency,
       l.foreign_amount
from entry, unnest($8::text[], $9::text[], $10::numeric[], $11::numeric[], $12::text[],
                   $13::numeric[])
     with ordinality as l (book, ticker, amount, quantity, currency, foreign_amount, line)
returning entry_id

-- name: insert_fill
insert into fills (order_id, number, entry_id, price, quantity, fee, session, currency,
                   foreign_price, rate, rate_on, foreign_fee)
select $1, (select count(*) + 1 from fills where order_id = $1), e.entry_id, $4, $5, $6, $7, $8, $9,
       $10, $11, $12
from entries e where e.account = $2 and e.key = $3

-- name: insert_intent
insert into venue_orders (order_id, account, ticker, side, quantity, terms, session, send_by)
values ($1, $2, $3, $4, $5, $6::text::jsonb, $7, $8)

-- name: insert_event
insert into state_events (started_on, op_id, seq, cycle_id, type, owner, pipeline, state,
                          session_id, data)
values ($1, $2, $3, $4, $5, 'execution', $6, $7, $8, $9::text::jsonb)
on conflict do nothing

-- name: has_entry
select exists (select from entries where account = $1 and key = $2)

-- name: count_cash_moved
select count(*) from entries where account = $1 and kind in ('deposit', 'withdrawal')

-- name: find_execution
select result::text as result from executions where op_id = $1

-- name: insert_execution
insert into executions (op_id, account, command_sha256, result)
values ($1, $2, $3, $4::text::jsonb)
