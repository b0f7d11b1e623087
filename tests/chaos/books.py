"""What must hold of the books after any chaos: statements that name what breaks it."""

import asyncpg

PROMISES = {
    "every entry sums to zero": """
        select e.key from entries e join postings p using (entry_id)
        where p.currency is null group by e.entry_id, e.key having sum(p.amount) <> 0
    """,
    "balances are the sums of their postings": """
        select account, book, ticker from (
            select account, book, coalesce(ticker, '') as ticker, sum(amount) as amount,
                   sum(quantity) as quantity
            from postings group by 1, 2, 3
        ) p full join balances b using (account, book, ticker)
        where (p.amount, p.quantity) is distinct from (b.amount, b.quantity)
    """,
    "cash is never below zero": """
        select account, entry_id from (
            select account, entry_id, sum(amount) over (partition by account order by entry_id)
            from postings where book = 'cash'
        ) cash where sum < 0
    """,
    "no position is below zero": "select account, ticker from balances where quantity < 0",
    "never more is sold than is held": """
        select account, ticker, entry_id from (
            select account, ticker, entry_id,
                   sum(quantity) over (partition by account, ticker order by entry_id, line)
            from postings where book = 'position'
        ) held where sum < 0
    """,
    "what is held was filled": """
        with moved as (
            select o.account, o.ticker, case o.side when 'buy' then 1 else -1 end * f.quantity as n
            from orders o join fills f using (order_id)
            union all
            select p.account, p.ticker, p.quantity
            from postings p join entries e using (entry_id)
            where e.kind = 'split' and p.book = 'position'
        ), owed as (select account, ticker, sum(n) as quantity from moved group by 1, 2)
        select account, ticker, o.quantity as filled, b.quantity as held
        from owed o full join (select * from balances where book = 'position') b
            using (account, ticker)
        where coalesce(o.quantity, 0) <> coalesce(b.quantity, 0)
    """,
    "cash is what fills, splits and dividends left": """
        with moved as (
            select account, starting_cash as amount from accounts
            union all
            -- Part of a cent is never the trader's gain.
            select o.account, case o.side when 'buy' then -ceil(100 * f.price * f.quantity)
                   else floor(100 * f.price * f.quantity) end / 100 - f.fee
            from orders o join fills f using (order_id)
            union all
            select p.account, p.amount from postings p join entries e using (entry_id)
            where e.kind in ('split', 'dividend') and p.book = 'cash'
        ), owed as (
            select account, sum(amount) as amount from moved
            -- What is traded in another currency goes by its rate.
            where account not in (select account from postings where currency is not null)
            group by 1
        )
        select account, o.amount as owed, b.amount as cash from owed o
        left join (select * from balances where book = 'cash') b using (account)
        where o.amount <> coalesce(b.amount, 0)
    """,
    "no order is placed twice": """
        select cycle_id, pipeline, ticker, side, type, count(*) from orders
        group by 1, 2, 3, 4, 5 having count(*) > 1
    """,
    "one exit an account, ticker and session": """
        select account, ticker, as_of, count(*) from orders
        where exit and type = 'market' and status <> 'rejected' group by 1, 2, 3 having count(*) > 1
    """,
    "an order is filled once, and whole": """
        select o.order_id, o.quantity, sum(f.quantity) from orders o join fills f using (order_id)
        group by 1, 2 having count(*) > 1 or sum(f.quantity) > o.quantity
    """,
    "nothing is filled at or before the session of its decision": """
        select order_id from orders o join fills f using (order_id) where f.session <= o.as_of
    """,
    "no order is without its decision, or above it": """
        with decided as (
            select o.cycle_id, o.pipeline, d ->> 'asset' as ticker, d ->> 'action' as side,
                   (d ->> 'quantity')::numeric as quantity
            from operations o
            cross join jsonb_array_elements(convert_from(o.result, 'utf8')::jsonb -> 'decisions') d
            where o.step in ('validate', 'validate_exits') and o.status = 'completed'
        )
        select o.order_id, o.side, o.ticker, o.quantity, d.quantity
        from orders o left join decided d using (cycle_id, pipeline, ticker, side)
        where o.type = 'market' and o.quantity > coalesce(d.quantity, 0)
    """,
    "a stop order is for no more than is held": """
        select o.account, o.ticker from orders o left join balances b
            on b.account = o.account and b.book = 'position' and b.ticker = o.ticker
        where o.type = 'stop' and o.status = 'waiting' and o.quantity > coalesce(b.quantity, 0)
    """,
    "a stop is placed on what its buy or exit left, or a higher one stays": """
        with left_of as (
            select o.cycle_id, o.pipeline, o.account, o.ticker, o.as_of, o.stop_price, (
                select floor(sum(p.quantity)) from postings p
                where p.account = o.account and p.ticker = o.ticker and p.entry_id <= f.entry_id
            ) as quantity
            from orders o join fills f using (order_id) where o.type = 'market'
        ), stops as (select * from orders where type = 'stop')
        select cycle_id, ticker, l.quantity as left_over, s.quantity as stopped, s.reason
        from (select * from left_of where stop_price is not null and quantity >= 1) l
        full join stops s using (cycle_id, pipeline, ticker)
        where l.quantity is null
           or (s.quantity is null and not exists (
               select from stops t where t.account = l.account and t.ticker = l.ticker
               and t.as_of < l.as_of and (t.stop_price > l.stop_price or t.reason ~ 'split of')
           ))
           -- Later sales and splits say so in its reason.
           or (s.quantity <> l.quantity and s.reason !~ 'cut from|split of')
           or (s.quantity > l.quantity and s.reason !~ 'split of')
    """,
    "one decision event a validation": """
        select cycle_id, pipeline from (
            select cycle_id, pipeline, count(*) as owed from operations
            where step in ('validate', 'validate_exits') and status = 'completed' group by 1, 2
        ) o full join (
            select cycle_id, pipeline, count(*) as made from state_events
            where type = 'decision' group by 1, 2
        ) e using (cycle_id, pipeline)
        where owed is distinct from made
    """,
    "one cycle_ended a cycle": """
        select c.cycle_id, count(e.*) from cycles c
        left join state_events e on e.cycle_id = c.cycle_id and e.type = 'cycle_ended'
        where c.status <> 'running' group by 1 having count(e.*) <> 1
    """,
    "each executed operation has one result": """
        select o.op_id from operations o left join executions x using (op_id)
        where o.step = 'execute' and o.status = 'completed' and x.op_id is null
    """,
}
"""By what is promised: a statement that gives a row for each time that it is broken."""


async def broken(db: "asyncpg.Connection[asyncpg.Record]") -> dict[str, list[str]]:
    """The promises that do not hold, with the rows that break them."""
    found = {promise: await db.fetch(statement) for promise, statement in PROMISES.items()}
    return {promise: [str(dict(row)) for row in rows] for promise, rows in found.items() if rows}
