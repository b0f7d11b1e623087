-- What people ask, as the role deskbus_console, which may only select.

-- part: cycle_whole
cycle_id, kind, as_of, status, reason, requester, request, state, accepted_at, ended_at,
       tokens_spent as tokens, cost(cost_usd_spent, unpriced) as cost_usd, input_tokens,
       output_tokens, cache_read_tokens, cache_write_tokens

-- part: cycle_listed
cycle_id, kind, as_of, status, requester, request, accepted_at, ended_at,
       tokens_spent as tokens, cost(cost_usd_spent, unpriced) as cost_usd

-- part: operation_columns
op_id, cycle_id, pipeline, state, step, service, attempt, status, epoch, progress, tokens,
       cost(cost_usd, unpriced) as cost_usd, input_tokens,
       output_tokens, cache_read_tokens, cache_write_tokens, result, failure,
       created_at, started_at, finished_at

-- part: operation_listed
select o.op_id, o.cycle_id, o.pipeline, o.state, o.step, o.service, o.attempt, o.status, o.epoch,
       o.progress, o.tokens, cost(o.cost_usd, o.unpriced) as cost_usd, o.input_tokens,
       o.output_tokens, o.cache_read_tokens, o.cache_write_tokens, o.result, o.failure,
       o.created_at, o.started_at, o.finished_at, o.account, o.as_of, c.accepted_at

-- part: decided
select v.cycle_id, c.kind, v.pipeline, v.account, v.as_of, v.finished_at, v.result as decision,
       x.result as execution
from operations v
join cycles c on c.cycle_id = v.cycle_id
left join operations x on x.cycle_id = v.cycle_id and x.pipeline = v.pipeline
    and x.step = 'execute' and x.status = 'completed'
where v.step in ('validate', 'validate_exits') and v.status = 'completed'

-- part: decided_briefly
select v.cycle_id, c.kind, v.pipeline, v.account, v.as_of, v.finished_at, brief.decision,
       case when brief.decision is not null then x.result end as execution
from operations v
join cycles c on c.cycle_id = v.cycle_id
cross join lateral (
    select case when position('"decisions":[]'::bytea in v.result) = 0
                  or position('"vetoed_tickers":[]'::bytea in v.result) = 0
                then v.result end as decision
) brief
left join operations x on x.cycle_id = v.cycle_id and x.pipeline = v.pipeline
    and x.step = 'execute' and x.status = 'completed'
where v.step in ('validate', 'validate_exits') and v.status = 'completed'

-- part: strategy_of
select s.name, s.cycle_id, s.as_of, s.designed_at, c.status, c.reason,
       (select count(*) from strategies r where r.name = s.name) as runs,

-- part: strategy_figures
convert_from(d.result, 'UTF8')::jsonb as design,
       convert_from(t.result, 'UTF8')::jsonb - array['loss_curve', 'folds'] as training,
       convert_from(b.result, 'UTF8')::jsonb - array['sessions', 'trades', 'prices'] as backtest,
       convert_from(a.result, 'UTF8')::jsonb as assessment

-- part: strategy_steps
join cycles c using (cycle_id)
join operations d on d.op_id = s.design_op_id
left join operations t on t.op_id = s.train_op_id
left join operations b on b.op_id = s.backtest_op_id
left join operations a on a.op_id = s.assess_op_id

-- part: events_between
xid, id, op_id, seq, cycle_id, type, owner, pipeline, state, session_id, at, data
from state_events
where (xid, id) > ($1, $2) and (xid, id) <= ($3, $4)
  and xid < pg_snapshot_xmin(pg_current_snapshot())

-- name: answers
select 1

-- name: cycles_between
-- Ids that begin alike lie between two ids, so a shortened id is a range of the primary key.
select {cycle_whole}
from cycles where cycle_id between $1 and $2 order by cycle_id limit 2

-- name: newest_cycles
select {cycle_whole}
from cycles
where ($1::text[] is null or status = any($1)) and ($3::text is null or kind = $3)
  and requester <> 'study'
order by accepted_at desc limit $2

-- name: cycles_of_status
-- Of one status: the index by status and time is read from its newest end.
select {cycle_whole}
from cycles
where status = $1 and accepted_at >= coalesce($2, '-infinity'::timestamptz)
  and requester <> 'study'
order by accepted_at desc limit $3

-- name: stuck_operations
-- Work that was sent often without an answer, or that the sweep should have looked at long ago.
select {operation_columns}, sends
from operations
where status in ('pending', 'running') and step <> 'approval' and (sends >= $1 or due_at < $2)
order by created_at limit $3

-- name: attention
-- How many there are, whatever a page shows of them; of what failed, which stays on record, no more
-- than $4 are counted.
select (select count(*) from cycles where status = 'running' and requester <> 'study') as running,
       (select count(*) from (
           select from cycles
           where status = 'failed' and accepted_at >= $1 and requester <> 'study'
           order by accepted_at desc limit $4
       ) counted) as failed,
       (select count(*) from operations
        where step = 'approval' and status = 'pending') as approvals,
       (select count(*) from operations
        where status in ('pending', 'running') and step <> 'approval'
          and (sends >= $2 or due_at < $3)) as stuck

-- name: contracts
select op_id, result from operations where op_id = any($1::uuid[]) and result is not null

-- name: outcomes
-- What the account's later memories say of one decision. A memory tells what became known with its
-- as_of, so an outcome is in the first one from its session on; cycles at once may tell it twice.
select outcome::text as outcome
from (
    select as_of, finished_at, result from operations
    where account = $1 and step = 'memorize' and status = 'completed' and as_of > $2
    order by as_of, finished_at limit $5
) later
cross join lateral json_array_elements(
    coalesce(convert_from(later.result, 'UTF8')::json -> 'outcomes', '[]')
) as outcome
where outcome ->> 'cycle_id' = $3 and outcome ->> 'pipeline' = $4
order by later.as_of, later.finished_at

-- name: operations_of_cycle
select {operation_columns}
from operations where cycle_id = $1
order by created_at, op_id limit $2

-- name: calls_of_cycle
-- Only what the tree shows leaves the database: the bodies of calls are large. Each is read as JSON
-- once (`offset 0`), and only those that are asked for.
select page.op_id, page.index, page.epoch, page.recorded_at, call ->> 'kind' as kind,
       call ->> 'name' as name, call -> 'usage' as usage,
       (call ->> 'duration_ms')::float8 as duration_ms, (call ->> 'passed')::boolean as passed,
       call #>> '{request,again}' as again, call #>> '{reply,fault,code}' as fault,
       case when call ->> 'kind' = 'tool' then left(call #>> '{request,arguments}', 2000) end as given,
       case when call ->> 'kind' = 'tool' then left(call ->> 'reply', 4000) end as reply,
       octet_length(call ->> 'reply') as reply_bytes
from (
    select j.op_id, j.index, j.epoch, j.recorded_at, j.entry, o.created_at
    from operations o
    join journal j on j.started_on = o.started_on and j.op_id = o.op_id
    where o.cycle_id = $1 and ($4::uuid is null or o.op_id = $4)
    order by o.created_at, o.op_id, j.index offset $2 limit $3
) page
cross join lateral (select convert_from(page.entry, 'UTF8')::json as call offset 0) read
order by page.created_at, page.op_id, page.index

-- name: calls_counted
-- By operation and claim, without reading a call.
select j.op_id, j.epoch, count(*)::int as calls, min(j.recorded_at) as first_at
from operations o
join journal j on j.started_on = o.started_on and j.op_id = o.op_id
where o.cycle_id = $1
group by j.op_id, j.epoch order by j.op_id, j.epoch

-- name: tries_of_cycle
-- Second and later tries of a model's turn. In JSON a text cannot hold these bytes, only a key can.
select j.op_id, j.recorded_at, read.call #>> '{request,again}' as again
from operations o
join journal j on j.started_on = o.started_on and j.op_id = o.op_id
cross join lateral (select convert_from(j.entry, 'UTF8')::json as call) read
where o.cycle_id = $1 and position('"again":'::bytea in j.entry) > 0
  and read.call #>> '{request,again}' is not null and read.call ->> 'kind' = 'model'
order by j.recorded_at limit $2

-- name: kinds_of_calls
select j.index, convert_from(j.entry, 'UTF8')::json ->> 'kind' as kind
from journal j where j.started_on = $1 and j.op_id = $2 order by j.index limit $3

-- name: calls_between
select index, epoch, recorded_at, entry from journal
where started_on = $1 and op_id = $2 and index between $3 and $4 order by index

-- name: prompt_texts
select sha256, text from prompt_texts
where started_on = date_trunc('month', $1::date)::date and sha256 = any($2::bytea[])

-- name: same_step_before
-- Along the index of an account's decisions, past its exits.
select before.op_id, before.started_on
from operations o
cross join lateral (
    select cycle_id, pipeline, finished_at from operations
    where step = 'validate' and status = 'completed'
      and account = o.account and finished_at < o.created_at
    order by finished_at desc limit $2
) decided
join operations before on before.cycle_id = decided.cycle_id and before.step = o.step
    and before.state = o.state and before.account = o.account and before.started_at is not null
where o.op_id = $1
order by decided.finished_at desc, before.attempt desc limit 1

-- name: operation
select op_id, cycle_id, started_on, pipeline, state, step, service, attempt, status, epoch,
       progress, tokens, cost(cost_usd, unpriced) as cost_usd, input_tokens,
       output_tokens, cache_read_tokens, cache_write_tokens, result, failure, command, created_at, started_at, finished_at
from operations where op_id = $1

-- name: operations_between
-- As cycles_between.
select op_id from operations where op_id between $1 and $2 order by op_id limit 2

-- name: journal
select entry from journal where started_on = $1 and op_id = $2
order by index offset $3 limit $4

-- name: sizes_on_record
select o.op_id, octet_length(o.command) + coalesce(octet_length(o.result), 0) as head_bytes,
       coalesce(array_agg(octet_length(j.entry) order by j.index) filter (where j.index is not null),
                '{}') as entry_bytes
from operations o
left join journal j on j.started_on = o.started_on and j.op_id = o.op_id
where o.cycle_id = $1
group by o.op_id
order by o.created_at, o.op_id

-- name: waiting_approvals
select o.op_id, o.cycle_id, o.pipeline, o.account, o.as_of, o.command, o.created_at, o.deadline_at,
       c.requester, c.request
from operations o join cycles c using (cycle_id)
where o.step = 'approval' and o.status = 'pending' and ($1::uuid is null or o.cycle_id = $1)
order by o.deadline_at, o.op_id limit $2

-- name: count_proposals
-- As the orchestrator counts them before it takes one more; each count by its own index,
-- which takes no clock that moves within a statement.
select (select count(*) from cycles
        where requester = $1 and accepted_at > statement_timestamp() - interval '1 hour') as lately,
       (select count(*) from cycles where requester = $1 and status = 'running') as open

-- name: newest_decisions
-- In the order of their making, which has an index; what was executed stands beside each.
{decided} and c.requester <> 'study'
order by v.finished_at desc limit $1

-- name: decisions_of_cycle
-- As `newest_decisions`, of one cycle; a plan for any filter would go through all there are.
{decided} and v.cycle_id = $1
  and ($2::text is null or v.account = $2)
order by v.finished_at desc limit $3

-- name: decisions_of_account
-- As `newest_decisions`, along the index of accounts.
{decided} and v.account = $1
order by v.finished_at desc limit $2

-- name: decisions_briefly
-- As `newest_decisions`; of those that ordered and vetoed nothing, which are most where positions are
-- checked every session, no contract leaves the database.
{decided_briefly} and c.requester <> 'study'
order by v.finished_at desc limit $1

-- name: decisions_of_account_briefly
-- As `decisions_briefly`, along the index of accounts.
{decided_briefly} and v.account = $1
order by v.finished_at desc limit $2

-- name: events_after
-- The rank in commit-safe order is the sequence: the relay counts the same way.
select op_id, seq, cycle_id, type, owner, pipeline, state, session_id, at, data
from state_events
where cycle_id = $1 and xid < pg_snapshot_xmin(pg_current_snapshot())
order by xid, id offset $2 limit $3

-- name: account
select a.account, a.currency, a.clock, a.starting_cash, limits_of(a.account)::text as limits,
       greatest(a.clock, (select max(e.session) from entries e where e.account = a.account)) as as_of,
       (select closes::text from snapshots s where s.account = a.account
        order by s.session desc limit 1) as closes, a.venue, a.venue_account
from accounts a where a.account = $1

-- name: halts
select account, reason, by_whom, at from blocks order by account nulls first

-- name: accounts
-- Those of studies are out of sight.
select account from accounts where account not like 'study-%' order by main desc, opened_at limit $1

-- name: watched_accounts
-- The main one, those that hold something, the newest first.
select a.account from accounts a
where a.account not like 'study-%'
order by a.main desc, exists (
             select from balances b
             where b.account = a.account and b.book = 'position' and b.quantity > 0
         ) desc, a.clock desc, a.opened_at desc limit $1

-- name: balances
select book, ticker, amount, quantity, opened_on from balances where account = $1

-- name: snapshots
-- Those of the accounts that could be valued. The newest of each has what each position was valued at,
-- and what the owner has paid in by now: read at once, so that no close comes in between.
select c.*, case when is_newest then (
           select kept.closes::text from snapshots kept
           where kept.account = c.account and kept.session = c.session
       ) end as closes, case when is_newest then (
           select -sum(b.amount) from balances b where b.account = c.account and b.book = 'capital'
       ) end as paid_in_now
from (
    select s.account, s.session, s.cash, s.positions, s.realised, s.unrealised, s.dividends, s.fees,
           s.paid_in, s.session = max(s.session) over (partition by s.account) as is_newest
    from snapshots s
    where s.account = any($1::text[]) and s.equity is not null
) c order by c.account, c.session

-- name: closes_of
select closes::text from snapshots where account = $1 and session = $2

-- name: held
-- What research and the market last said of what is held: the sector, and the newest fill.
select distinct on (o.ticker) o.ticker, o.sector, f.price, f.session, f.currency, f.foreign_price,
       f.rate, f.rate_on
from orders o join fills f using (order_id)
where o.account = $1 and o.ticker = any($2::text[])
order by o.ticker, f.session desc, f.filled_at desc

-- name: sectors_brought_in
-- Of holdings that the owner brought in: as the source had it then.
select ticker, sector from entries
where account = $1 and ticker = any($2::text[]) and sector is not null

-- name: plans
-- Of the newest buy of each ticker that was filled.
select distinct on (o.ticker) o.ticker, o.plan, o.thesis, o.cycle_id, f.session
from orders o join fills f using (order_id)
where o.account = $1 and o.ticker = any($2::text[]) and o.side = 'buy' and o.plan is not null
order by o.ticker, f.session desc, o.placed_at desc

-- name: working_orders
select order_id, ticker, side, type, quantity, hold, stop_price, currency, as_of from orders
where account = $1 and status in ('working', 'waiting') order by as_of, ticker

-- name: newest_judged
-- The newest decision of an account with the books that it was judged by.
select v.cycle_id, v.as_of, v.result as decision, b.result as books
from operations v
join operations b on b.cycle_id = v.cycle_id and b.pipeline = v.pipeline
    and b.step = 'books' and b.status = 'completed'
where v.account = $1 and v.step = 'validate' and v.status = 'completed'
order by v.finished_at desc limit 1

-- name: risk_cuts
-- What each rule took from the proposals of an account since a session, and the newest case.
select rule, count(*) filter (where outcome = 'cut')::int as cut,
       count(*) filter (where outcome = 'vetoed')::int as vetoed, max(as_of) as as_of,
       (array_agg(ticker order by as_of desc, cycle_id, place))[1] as ticker,
       (array_agg(reason order by as_of desc, cycle_id, place))[1] as reason,
       (array_agg(cycle_id order by as_of desc, cycle_id, place))[1] as cycle_id,
       (array_agg(pipeline order by as_of desc, cycle_id, place))[1] as pipeline
from desk.checks
where account = $1 and as_of > $2 and outcome <> 'kept'
group by rule order by count(*) desc, rule limit $3

-- name: newest_checks
-- What these rules measured last of an account, since a session.
select distinct on (rule) rule, value, as_of from desk.checks
where account = $1 and as_of > $2 and rule = any($3::text[])
order by rule, as_of desc, cycle_id, place

-- name: newest_fills
select f.order_id, o.ticker, o.side, f.price, f.quantity, f.fee, f.session, f.currency,
       f.foreign_price, f.rate, f.rate_on, o.cycle_id, o.pipeline
from orders o join fills f using (order_id)
where o.account = $1
order by f.session desc, f.filled_at desc, f.order_id limit $2

-- name: moves
-- What touched each ticker of these accounts, in the order of the ledger: what an entry's lines come to
-- by book, with the order behind it. A credit is a gain, and the ledger writes it with a minus. At
-- most so many of each account.
select e.account, e.session, e.ticker, e.kind = 'split' as is_split, p.quantity, p.cost, p.realised,
       p.dividends, p.fees, o.order_id, o.cycle_id, o.pipeline, o.side, o.type, o.exit,
       o.exit_rules, coalesce(f.price * f.quantity, 0) as traded
from unnest($1::text[]) as asked (account)
cross join lateral (
    select * from entries own where own.account = asked.account and own.ticker is not null
    order by own.session, own.entry_id limit $2
) e
cross join lateral (
    select coalesce(sum(quantity), 0) as quantity,
           coalesce(sum(amount) filter (where book = 'position'), 0) as cost,
           coalesce(-sum(amount) filter (where book = 'realised'), 0) as realised,
           coalesce(-sum(amount) filter (where book = 'dividends'), 0) as dividends,
           coalesce(sum(amount) filter (where book = 'fees'), 0) as fees
    from postings where entry_id = e.entry_id
) p
left join fills f on f.entry_id = e.entry_id
left join orders o using (order_id)
order by e.account, e.session, e.entry_id

-- name: traded_tickers
-- Every ticker that the account ever held, those that it holds first.
select ticker from balances where account = $1 and book = 'position'
order by quantity = 0, ticker limit $2

-- name: ticker_entries
-- As `moves`, of one ticker, in the currency that it trades in: what is held changes by `quantity`
-- and `cost`. `gain` is the account's: realised gains and dividends less fees.
select e.session, p.quantity, p.cost, p.gain, o.cycle_id, o.pipeline, o.side, o.type, o.exit,
       o.exit_rules, o.thesis, o.as_of, f.quantity as filled,
       coalesce(f.foreign_price, f.price) as price, coalesce(f.currency, a.currency) as currency,
       a.currency as account_currency
from entries e
join accounts a using (account)
cross join lateral (
    select coalesce(sum(quantity), 0) as quantity,
           coalesce(sum(coalesce(foreign_amount, amount)) filter (where book = 'position'), 0)
               as cost,
           coalesce(-sum(amount) filter (where book in ('realised', 'dividends', 'fees')), 0)
               as gain
    from postings where entry_id = e.entry_id
) p
left join fills f on f.entry_id = e.entry_id
left join orders o using (order_id)
where e.account = $1 and e.ticker = $2
order by e.session, e.entry_id limit $3

-- name: ticker_closes
-- The closes that the ticker was valued at while it was held, and the stop order that waited then.
select s.session, (held ->> 'price')::numeric as price, held ->> 'currency' as currency,
       (select (stop ->> 'stop_price')::numeric from jsonb_array_elements(s.stops) stop
        where stop ->> 'ticker' = $2 limit 1) as stop_price
from snapshots s
cross join lateral jsonb_array_elements(s.closes) held
where s.account = $1 and held ->> 'ticker' = $2 and held ->> 'priced_on' is null
order by s.session

-- name: last_order
select cycle_id, op_id from orders where account = $1 order by as_of desc, placed_at desc limit 1

-- name: day_budgets
select day, tokens_spent as tokens, cost(cost_usd_spent, unpriced) as cost_usd,
       cost_usd_spent as known_usd, input_tokens, output_tokens, cache_read_tokens,
       cache_write_tokens, tokens_reserved, cost_usd_reserved
from day_budgets where day <= $1 order by day desc limit $2

-- name: paid_calls
-- What the newest operations with paid calls used, by the day, model and step of each call. What an
-- operation used beyond its journalled calls was held back for one whose reply never came.
with paid as materialized (
    select op_id, started_on, step, created_at, tokens, cost_usd, unpriced from operations
    where tokens > 0 and created_at >= ($1::date::timestamp at time zone 'UTC')
    order by created_at desc limit $2
), calls as materialized (
    -- Each entry is read as JSON once: it has a whole reply.
    select p.op_id, (j.recorded_at at time zone 'UTC')::date as day, call.name, p.step, used.*
    from paid p
    join journal j on j.started_on = p.started_on and j.op_id = p.op_id
    cross join lateral json_to_record(convert_from(j.entry, 'UTF8')::json)
        as call (kind text, name text, usage json)
    cross join lateral json_to_record(call.usage)
        as used (input_tokens bigint, output_tokens bigint, cache_read_tokens bigint,
                 cache_write_tokens bigint, unsorted_tokens bigint, cost_usd numeric)
    where call.kind = 'model'
), lost as (
    select (p.created_at at time zone 'UTC')::date as day, p.step,
           p.tokens - coalesce(c.tokens, 0) as tokens,
           cost(p.cost_usd - coalesce(c.cost_usd, 0), p.unpriced) as cost_usd
    from paid p
    left join (
        select op_id, sum(input_tokens + output_tokens + cache_read_tokens + cache_write_tokens
                          + coalesce(unsorted_tokens, 0)) as tokens, sum(cost_usd) as cost_usd
        from calls group by op_id
    ) c using (op_id)
)
select day, name, step, count(*) as calls, sum(input_tokens)::bigint as input_tokens,
       sum(output_tokens)::bigint as output_tokens,
       sum(cache_read_tokens)::bigint as cache_read_tokens,
       sum(cache_write_tokens)::bigint as cache_write_tokens,
       sum(coalesce(unsorted_tokens, 0))::bigint as unsorted_tokens,
       cost(sum(cost_usd), bool_or(cost_usd is null)) as cost_usd,
       (select count(*) from paid) as operations
from calls where input_tokens + output_tokens + cache_read_tokens + cache_write_tokens
                 + coalesce(unsorted_tokens, 0) > 0
group by day, name, step
union all
select day, null, step, 0, 0, 0, 0, 0, sum(tokens)::bigint,
       cost(sum(cost_usd), bool_or(cost_usd is null)), (select count(*) from paid)
from lost where tokens > 0 group by day, step
order by day desc, cost_usd desc

-- name: decision_cycles
-- The newest ones first where there are too many; told in the order of their time. `+ 0` keeps the
-- planner from the index by session, through which all of them would be sorted to find the newest.
select cycle_id from (
    select cycle_id, accepted_at from cycles
    where kind = 'decision' and as_of + 0 between $1 and $2 and status <> 'running'
      and requester <> 'study'
    order by accepted_at desc, cycle_id desc limit $3
) newest
order by accepted_at, cycle_id

-- name: cycles_whole
select cycle_id, as_of, request, state from cycles where cycle_id = any($1::uuid[])

-- name: runs_of_cycles
-- What each pipeline of these cycles used, how much it picked and how much of that was vetoed.
-- Counted row by row below (`offset 0`), so that no result is carried into a sort or read twice; a
-- validation is long and has mostly no veto, which is seen without reading it as JSON.
select cycle_id, pipeline, sum(tokens)::bigint as tokens,
       cost(sum(cost_usd), bool_or(unpriced)) as cost_usd,
       sum(input_tokens)::bigint as input_tokens, sum(output_tokens)::bigint as output_tokens,
       sum(cache_read_tokens)::bigint as cache_read_tokens,
       sum(cache_write_tokens)::bigint as cache_write_tokens,
       coalesce(sum(picks), 0)::int as picks, coalesce(sum(vetoes), 0)::int as vetoes
from (
    select cycle_id, pipeline, tokens, cost_usd, unpriced, input_tokens, output_tokens, cache_read_tokens,
           cache_write_tokens,
           case step when 'picks' then
               json_array_length(convert_from(result, 'UTF8')::json -> 'picks')
               + json_array_length(convert_from(result, 'UTF8')::json -> 'sell_recommendations')
           end as picks,
           case when step = 'validate' and position('"vetoed_tickers":[]'::bytea in result) = 0 then
               json_array_length(convert_from(result, 'UTF8')::json -> 'vetoed_tickers')
           end as vetoes
    from operations where cycle_id = any($1::uuid[]) offset 0
) each
group by cycle_id, pipeline

-- name: memories_of
-- The newest of each account, along the index.
select o.op_id from unnest($1::text[]) as asked (account)
cross join lateral (
    select op_id, as_of, finished_at from operations
    where account = asked.account and step = 'memorize' and status = 'completed' and as_of >= $2
    order by as_of desc, finished_at desc limit $3
) o
order by o.as_of desc, o.finished_at desc

-- name: outcomes_of
-- What these memories tell of filled picks after some sessions.
select o.op_id, (outcome ->> 'cycle_id')::uuid as cycle_id, outcome ->> 'pipeline' as pipeline,
       pick ->> 'ticker' as ticker, pick ->> 'action' as action,
       (pick ->> 'return_pct')::numeric as return_pct
from operations o
cross join lateral json_array_elements(
    coalesce(convert_from(o.result, 'UTF8')::json -> 'outcomes', '[]')
) as outcome
cross join lateral json_array_elements(outcome -> 'picks') as pick
where o.op_id = any($1::uuid[]) and (outcome ->> 'sessions')::int = $2
  and pick ->> 'fate' = 'filled' and pick ->> 'return_pct' is not null

-- name: equity_of_accounts
select s.account, a.currency, s.session, s.equity, s.paid_in
from snapshots s join accounts a using (account)
where s.account = any($1::text[]) and s.session between $2 and $3 and s.equity is not null
order by s.account, s.session

-- name: traded_among
-- Of these accounts those whose ledger has touched a ticker.
select account from unnest($1::text[]) as asked (account)
where exists (
    select from entries e where e.account = asked.account and e.ticker is not null
)

-- name: newest_entries
-- The number of the newest entry of each account, and its newest valued close. Asked for as the last one up to the account, so that
-- the planner takes the index by accounts: through that of all entries it would look for the last one
-- of an account that has long been quiet among those of all others.
select newest.account, newest.entry_id, (
           select s.session from snapshots s
           where s.account = newest.account and s.equity is not null
           order by s.session desc limit 1
       ) as closed_on
from unnest($1::text[]) as asked (account)
cross join lateral (
    select e.account, e.entry_id from entries e where e.account <= asked.account
    order by e.account desc, e.entry_id desc limit 1
) newest
where newest.account = asked.account

-- name: newest_strategies
{strategy_of}
       {strategy_figures}
from (select * from strategies order by designed_at desc limit $1) s
{strategy_steps}
order by s.designed_at desc

-- name: strategies_named
{strategy_of}
       {strategy_figures}
from (
    select distinct on (name) * from strategies where name = any($1::text[])
    order by name, designed_at desc
) s
{strategy_steps}

-- name: strategy_whole
{strategy_of}
       d.result as design, t.result as training, b.result as backtest, a.result as assessment
from (
    select * from strategies where name = $1 order by designed_at desc limit 1
) s
{strategy_steps}

-- name: strategy_names
select name from strategies group by name order by max(designed_at) desc limit $1

-- name: jobs
-- What is on record of jobs, each with its newest run.
select j.job, j.paused_at, j.paused_by, j.paused_reason, r.slot, r.session, r.as_of, r.outcome,
       r.cycle_id, r.missed, r.by_whom as by, c.status,
       coalesce(nullif(r.reason, ''), c.reason, '') as reason
from schedule_jobs j
left join lateral (
    select * from schedule_slots s where s.job = j.job order by s.slot desc limit 1
) r on true
left join cycles c using (cycle_id)
where j.job = any($1::text[])

-- name: newest_slots
select r.job, r.slot, r.outcome, r.cycle_id, c.status
from unnest($1::text[]) as asked (job)
cross join lateral (
    select * from schedule_slots s where s.job = asked.job order by s.slot desc limit $2
) r
left join cycles c using (cycle_id)
order by r.job, r.slot

-- name: day_cycles
-- A session's cycles with a pipeline on the account, in the order of their time: those of its slots,
-- though a slot before the close sees the session before, and of the others those as of it. An array
-- is read by the key; as a join each cycle there is would be looked for among those of the session.
select {cycle_whole}
from cycles
where cycle_id = any(array(
        select cycle_id from schedule_slots where session = $1
        union all
        select c.cycle_id from cycles c
        where c.as_of = $1 and not exists (
            select from schedule_slots s where s.cycle_id = c.cycle_id and s.session <> $1
        )
    ))
  and kind not in ('snapshot', 'report', 'strategy')
  and convert_from(request, 'UTF8')::jsonb -> 'pipelines'
      @> jsonb_build_array(jsonb_build_object('account', $2::text))
order by accepted_at limit $3

-- name: day_decisions
-- What the rules left, by cycle and pipeline.
select o.cycle_id, o.pipeline, made.contract -> 'decisions' as decisions,
       made.contract -> 'vetoed_tickers' as vetoed
from operations o
cross join lateral (select convert_from(o.result, 'UTF8')::json as contract) made
where o.cycle_id = any($1::uuid[]) and o.account = $2 and o.service = 'risk'
  and o.status = 'completed' and made.contract -> 'proposal_hash' is not null

-- name: day_unchecked
-- Positions that a sell check could not check.
select o.cycle_id, found ->> 'ticker' as ticker, found -> 'failure' ->> 'message' as message
from operations o
cross join lateral json_array_elements(convert_from(o.result, 'UTF8')::json -> 'checks') as found
where o.cycle_id = any($1::uuid[]) and o.account = $2 and o.service = 'exit_signal'
  and o.status = 'completed' and found -> 'failure' ->> 'message' is not null
order by o.finished_at, ticker

-- name: day_snapshots
-- The session's close, and the newest one before it that could be valued.
select session, cash, positions, equity, realised, unrealised, dividends, fees, unpriced,
       paid_in, stops::text, closes::text
from snapshots
where account = $1 and (session = $2 or session < $2 and equity is not null)
order by session desc limit 2

-- name: day_fills
select o.ticker as asset, o.side, o.type, f.quantity, f.price, f.fee
from orders o join fills f using (order_id)
where o.account = $1 and f.session = $2 order by f.filled_at, f.order_id limit $3

-- name: day_orders
-- A stop that waits is one that works, on the wire too.
select o.ticker as asset, o.side, o.type, o.quantity, o.reason, o.stop_price,
       coalesce(o.currency, a.currency) as currency,
       case o.status when 'waiting' then 'working' else o.status end as status
from orders o join accounts a using (account)
where o.account = $1 and o.cycle_id = any($2::uuid[]) order by o.placed_at, o.order_id limit $3

-- name: orders_of
-- The orders of these cycles for each account as they stand now, each with its last fill's session. A
-- stop's price is in the currency that its ticker trades in.
select o.order_id, o.account, o.cycle_id, o.pipeline, o.ticker, o.side, o.type, o.reason, a.currency,
       case when o.type = 'stop' then o.stop_price end as stop_price,
       coalesce(o.currency, a.currency) as stop_currency,
       case o.status when 'waiting' then 'working' else o.status end as status,
       exists (select from venue_orders v where v.order_id = o.order_id) as at_broker,
       (select max(f.session) from fills f where f.order_id = o.order_id) as filled_on
from unnest($1::text[], $2::uuid[]) as decided (account, cycle_id)
join orders o on o.account = decided.account and o.cycle_id = decided.cycle_id
join accounts a on a.account = o.account
order by o.placed_at, o.order_id

-- name: day_held
-- The books as of the session.
select p.ticker, sum(p.quantity) as quantity, sum(p.amount) as amount
from entries e join postings p using (entry_id)
where e.account = $1 and e.session <= $2 and p.book = 'position'
group by p.ticker having sum(p.quantity) > 0 order by p.ticker limit $3

-- name: day_slots
-- Slots of the session that did not come to a cycle.
select job, slot, outcome, reason, missed from schedule_slots
where session = $1 and outcome in ('rejected', 'skipped') and $2 = any(accounts)
order by slot limit $3

-- name: events_since
-- In the relay's order, and below its horizon: nothing can appear before what was read.
select {events_between}
order by xid, id limit $5

-- name: events_of_cycle_since
select {events_between} and cycle_id = $6
order by xid, id limit $5

-- name: event_back
select xid, id, op_id, seq from state_events
where xid < pg_snapshot_xmin(pg_current_snapshot())
order by xid desc, id desc offset $1 limit 1

-- name: event_of_cycle_back
select xid, id, op_id, seq from state_events
where xid < pg_snapshot_xmin(pg_current_snapshot()) and cycle_id = $2
order by xid desc, id desc offset $1 limit 1

-- name: event_at
select xid, id, op_id, seq from state_events where xid = $1 and id = $2

-- name: events_dropped
select dropped_xid, dropped_id from relay_cursor

-- name: notifications
-- Newest first; those that ended long ago are dropped by the orchestrator, so there are few.
select number, channel, notice::text as notice, status, due_at, tries, error_code as code, ended_at
from notifications
where ($1::text is null or channel = $1) and ($2::uuid is null or event_id = $2)
  and ($3::text is null or status = $3) and ($4::bigint is null or number < $4)
order by number desc limit $5

-- name: notice_channels
select channel, count(*) filter (where status = 'due') as waiting,
       count(*) filter (where status = 'sent') as sent,
       count(*) filter (where status = 'given_up') as given_up,
       count(*) filter (where status = 'given_up' and error_code = 'lost') as lost,
       coalesce(max(tries) filter (where status = 'due'), 0) as failures,
       min(tried_at) filter (where status = 'due') as failing_since,
       coalesce((array_agg(error_code order by tries desc) filter (where status = 'due'))[1], '') as code,
       max(ended_at) filter (where status = 'sent') as sent_at,
       min(event_at) filter (where status = 'due') as oldest_at, min(event_at) as first_at
from notifications group by channel order by channel limit $1

-- name: cycles_beginning
-- Ids that begin alike lie between two ids, so a shortened id is a range of the primary key.
select {cycle_listed}
from cycles
where cycle_id between $1 and $2 order by cycle_id limit $3

-- name: operations_beginning
select op_id, state, step, status from operations
where op_id between $1 and $2 order by op_id limit $3

-- name: place_of_operation
select c.accepted_at, o.created_at, o.op_id
from operations o join cycles c using (cycle_id) where o.op_id = $1

-- name: operations_listed
{operation_listed}
from operations o join cycles c using (cycle_id) where o.op_id = any($1::uuid[])
order by c.accepted_at desc, o.created_at desc, o.op_id desc

-- name: operations_of_cycles
-- As many as one page has: cycles whose ids begin alike are few.
{operation_listed}
from operations o join cycles c using (cycle_id) where o.cycle_id = any($1::uuid[])
order by c.accepted_at desc, o.created_at desc, o.op_id desc limit $2

-- name: recent_operations
-- Of the newest cycles only: a step that is rare among them is not searched for in all there are.
-- Behind a place in the list ($8 to $10).
{operation_listed}
from (
    select cycle_id, accepted_at from cycles where accepted_at <= $8 and requester <> 'study'
    order by accepted_at desc limit $4
) c
join operations o using (cycle_id)
where ($1::text is null or o.status = $1) and ($2::text is null or o.step = $2)
  and ($5::text is null or o.account = $5) and o.as_of between $6 and $7
  and (c.accepted_at, o.created_at, o.op_id) < ($8, $9, $10)
order by c.accepted_at desc, o.created_at desc, o.op_id desc limit $3

-- name: open_operations
-- What goes on has a partial index, and is little.
{operation_listed}
from operations o join cycles c using (cycle_id)
where o.status in ('pending', 'running') and o.status = $1 and ($2::text is null or o.step = $2)
  and c.requester <> 'study'
  and ($4::text is null or o.account = $4) and o.as_of between $5 and $6
  and (o.created_at, o.op_id) < ($7, $8)
order by o.created_at desc, o.op_id desc limit $3

-- name: lost_operations
{operation_listed}
from operations o join cycles c using (cycle_id)
where o.status in ('failed', 'cancelled') and o.status = $1 and ($2::text is null or o.step = $2)
  and c.requester <> 'study'
  and ($4::text is null or o.account = $4) and o.as_of between $5 and $6
  and o.created_at <= $7 and (o.created_at, o.op_id) < ($7, $8)
order by o.created_at desc, o.op_id desc limit $3

-- name: tickers_like
-- One row an account, book and ticker: as many as were ever held.
select distinct ticker from balances
where book = 'position' and position(upper($1) in ticker) > 0
order by ticker limit $2

-- name: walked_by_time
-- Behind a place in the list, along an index: as many rows as are asked for, however many there are.
-- Those of one moment are in the order of their ids, so that none is lost between two pages.
select {cycle_listed}
from cycles
where accepted_at <= $1 and (accepted_at, cycle_id) < ($1, $2) and requester <> 'study'
order by accepted_at desc, cycle_id desc limit $3

-- name: walked_by_status
select {cycle_listed}
from cycles
where status = $4 and accepted_at <= $1 and (accepted_at, cycle_id) < ($1, $2)
  and requester <> 'study'
order by accepted_at desc, cycle_id desc limit $3

-- name: walked_by_kind
select {cycle_listed}
from cycles
where kind = $4 and accepted_at <= $1 and (accepted_at, cycle_id) < ($1, $2)
  and requester <> 'study'
order by accepted_at desc, cycle_id desc limit $3

-- name: walked_by_session
select {cycle_listed}
from cycles
where as_of between $4 and $5 and (as_of, accepted_at, cycle_id) < ($6, $1, $2)
  and requester <> 'study'
order by as_of desc, accepted_at desc, cycle_id desc limit $3

-- name: cycles_listed
select {cycle_whole}
from cycles where cycle_id = any($1::uuid[])

-- name: executed
-- The execution of each pipeline of these cycles: it is what most outcomes are told by.
select cycle_id, pipeline, result from operations
where cycle_id = any($1::uuid[]) and step = 'execute' and result is not null

-- name: achieved
-- The deeds of pipelines without orders, as numbers: no contract leaves the database, and each is
-- read as JSON once (`offset 0`).
select o.cycle_id, o.pipeline, o.step,
       case o.step when 'check_exits' then json_array_length(made.contract -> 'checks')
                   when 'picks' then json_array_length(made.contract -> 'picks')
                                     + json_array_length(made.contract -> 'sell_recommendations')
                   when 'analyst' then json_array_length(made.contract -> 'tickers')
                   when 'validate' then json_array_length(made.contract -> 'decisions')
                   when 'validate_exits' then json_array_length(made.contract -> 'decisions')
                   end as number,
       case o.step when 'check_exits' then (
           select count(*)::int from json_array_elements(made.contract -> 'checks') as check_of
           where check_of ->> 'quantity' is not null) end as exits,
       case o.step when 'validate' then array(
           select check_of ->> 'rule' from json_array_elements(made.contract -> 'checks') as check_of
           where check_of ->> 'outcome' = 'vetoed') end as vetoes,
       case o.step when 'design' then made.contract #>> '{spec,name}'
                   when 'assess' then made.contract ->> 'verdict' end as word
from operations o
cross join lateral (select convert_from(o.result, 'UTF8')::json as contract offset 0) made
where o.cycle_id = any($1::uuid[]) and o.status = 'completed' and o.result is not null
  and o.step in ('check_exits', 'analyst', 'picks', 'validate', 'validate_exits', 'design', 'assess')
order by o.created_at
