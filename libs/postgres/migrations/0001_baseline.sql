-- All tables of Deskbus 0.2. Run as their owner. The roles deskbus_orchestrator, deskbus_execution and
-- deskbus_console exist; the last part says what each of them may do.


-- Cycles and operations

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
    data_version     text,                     -- the state of the market data that its work reads
    deadline_at      timestamptz not null,
    ended_at         timestamptz,
    tokens_max       bigint not null,
    cost_usd_max     numeric(18, 8) not null,
    tokens_spent     bigint not null default 0,
    tokens_reserved  bigint not null default 0,
    cost_usd_spent   numeric(18, 8) not null default 0,
    cost_usd_reserved numeric(18, 8) not null default 0,
    -- How often it was written. An orchestrator that still has a cycle's row from its last group
    -- writes the next one without reading it again, and is refused where another has been faster.
    revision         int not null default 0,
    -- Its clock stands while a person is asked: since when it does, and how long it has stood.
    waiting_since    timestamptz,
    waited_s         double precision not null default 0,
    -- Whether a model without a price was asked: the whole cost is unknown then, and `cost_usd_spent`
    -- has the known part of it. The same holds for operations and days.
    unpriced         boolean not null default false,
    -- The tokens spent by sort. What `tokens_spent` holds beyond these four is of no known sort: a
    -- reply that never came. The same holds for operations and days.
    input_tokens       bigint not null default 0,
    output_tokens      bigint not null default 0,
    cache_read_tokens  bigint not null default 0,
    cache_write_tokens bigint not null default 0
) with (fillfactor = 70);
create index cycles_running on cycles (deadline_at) where status = 'running';
create index cycles_by_time on cycles (accepted_at desc);
create index cycles_by_status on cycles (status, accepted_at desc);
create index cycles_by_kind on cycles (kind, accepted_at desc);
create index cycles_of_session on cycles (as_of, accepted_at);
-- One strategy cycle at a time. Of two orchestrators that accept one each, the second is refused
-- here, reads again, and says no.
create unique index cycles_one_strategy on cycles (kind) where kind = 'strategy' and status = 'running';

-- Fails where a commit would: read-only, a standby, no room left, or a synchronous standby away.
-- It changes no row. The message makes it a commit that is flushed, and that a synchronous standby
-- confirms. What is read twice is larger than work_mem: it takes 640 kB of disk, more than the most by
-- which Postgres extends a table at once (512 kB), and gives them back.
create function can_commit() returns void language plpgsql set work_mem = '64kB' as $$
declare
    rows bigint;
begin
    if current_setting('transaction_read_only')::boolean then
        raise exception 'nothing can be committed in a read-only transaction'
            using errcode = 'read_only_sql_transaction';
    end if;
    perform pg_logical_emit_message(true, 'can_commit', '');
    with kept as materialized (select repeat('x', 1000) || n as filler from generate_series(1, 640) n)
    select count(*) into strict rows from kept one where filler >= (select max(filler) from kept two);
end $$;

create function refuse_stale(written bigint, given int) returns void language plpgsql as $$
begin
    if written <> given then
        raise exception '% of % cycles were changed by another orchestrator', given - written, given
            using errcode = 'serialization_failure';
    end if;
end $$;

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
    cost_usd_reserved numeric(18, 8) default 0, -- null: unknown
    unpriced     boolean not null default false,
    sends        int not null default 1,
    due_at       timestamptz not null,         -- when the sweep looks: next sending, or lease's end
    deadline_at  timestamptz,
    created_at   timestamptz not null,
    started_at   timestamptz,
    finished_at  timestamptz,
    reserved_on  date,                         -- the UTC day whose budget holds its reservation
    input_tokens       bigint not null default 0,
    output_tokens      bigint not null default 0,
    cache_read_tokens  bigint not null default 0,
    cache_write_tokens bigint not null default 0
) with (fillfactor = 70);
create index operations_of_cycle on operations (cycle_id);
create index operations_due on operations (due_at) where status in ('pending', 'running');
create index operations_deadline on operations (deadline_at)
    where status in ('pending', 'running') and not must_answer;
create index operations_memory on operations (account, as_of desc, finished_at desc)
    where step = 'memorize' and status = 'completed';
-- What waits for a person, the first to expire first.
create index operations_waiting on operations (deadline_at)
    where step = 'approval' and status = 'pending';
create index operations_failed on operations (created_at desc) where status in ('failed', 'cancelled');
-- Exits are decisions too, and stand in the same list.
create index operations_decided on operations (finished_at desc)
    where step in ('validate', 'validate_exits') and status = 'completed';
-- Operations that paid nothing are most, and stay out.
create index operations_paid on operations (created_at desc) where tokens > 0;

-- What calls of models cost; null, so unknown, where one was asked whose price nobody knows.
create function cost(known_usd numeric, unpriced boolean) returns numeric language sql immutable
    parallel safe as 'select case when not unpriced then known_usd end';

-- What execution may know of operations: enough to hold a command against the one on record, and to
-- judge what it asks for. Its own operations alone, and no body of any.
create view commands_on_record as
select o.op_id, o.account, o.finished_at is not null as ended,
       encode(sha256(o.command), 'hex') as command_sha256,
       -- What the request lets a pipeline spend; null: no more than the account's own limits.
       nullif(convert_from(c.request, 'utf8')::jsonb #> '{budgets,money}', 'null') as budget,
       -- What it asks for beyond the account's limits: they only tighten.
       convert_from(c.request, 'utf8')::jsonb -> 'constraints' as constraints,
       asked.op_id is not null as asked,       -- whether a person was asked before it
       asked.result as approval                -- what was said, once it was
from operations o
join cycles c using (cycle_id)
left join operations asked
    on asked.cycle_id = o.cycle_id and asked.pipeline = o.pipeline and asked.step = 'approval'
where o.service = 'execution';


-- The journal of calls, and the events

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

-- One row: how far the relay has published, in commit-safe order, and how far retention has dropped
-- events: whoever resumes from before that may have missed some.
create table relay_cursor (
    one  boolean primary key default true check (one),
    xid  xid8 not null default '0',
    id   bigint not null default 0,
    dropped_xid xid8 not null default '0',
    dropped_id  bigint not null default 0
);
insert into relay_cursor default values;

-- Partitions by month of the cycle's start, so that retention drops whole cycles. Made ahead by the
-- orchestrator through this function, because it owns no tables. `prompt_texts` comes last, as in the
-- transactions that write several of these tables: locks in another order could meet in a deadlock.
create function ensure_partitions(month date) returns void
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    first date := date_trunc('month', month);
    after date := first + interval '1 month';
    parent text;
begin
    perform pg_advisory_xact_lock(hashtext('deskbus.partitions'));
    for parent in
        select relname from pg_class
        where relkind = 'p' and relnamespace = 'public'::regnamespace
        order by relname = 'prompt_texts', relname
    loop
        if to_regclass(format('%I', parent || to_char(first, '_YYYY_MM'))) is null then
            execute format('create table %I partition of %I for values from (%L) to (%L)',
                           parent || to_char(first, '_YYYY_MM'), parent, first, after);
        end if;
    end loop;
end $$;
select ensure_partitions(current_date), ensure_partitions((current_date + interval '1 month')::date);


-- Budgets, paces and the desk's clock

create table day_budgets (
    day               date primary key,
    tokens_spent      bigint not null default 0,
    tokens_reserved   bigint not null default 0,
    cost_usd_spent    numeric(18, 8) not null default 0,
    cost_usd_reserved numeric(18, 8) not null default 0,
    unpriced          boolean not null default false,
    input_tokens       bigint not null default 0,
    output_tokens      bigint not null default 0,
    cache_read_tokens  bigint not null default 0,
    cache_write_tokens bigint not null default 0
);

-- How fast each model endpoint is asked, by all replicas of all services: when the bucket of each of
-- its limits is full again, and until when it asked to be left alone (Retry-After).
create table paces (
    provider       text primary key,
    calls_full_at  timestamptz not null,
    tokens_full_at timestamptz not null,
    closed_until   timestamptz not null
);

-- Limits and leases stand still while nothing can be committed. Orchestrators set the clock on all
-- the time; where none can, it stands at `stands_at` until one can again, which gives all that runs
-- the time that it stood.
create table desk_clock (
    one       boolean primary key default true check (one),
    beat_at   timestamptz not null,
    stands_at timestamptz not null,
    beats     bigint not null default 0         -- so many so far: fewer than before where commits were lost
);
insert into desk_clock (beat_at, stands_at) values (clock_timestamp(), 'infinity');

-- When it stood.
create table outages (
    since_at timestamptz primary key,
    until_at timestamptz not null
);

create function desk_now() returns timestamptz language sql volatile as
$$ select least(clock_timestamp(), stands_at) from desk_clock $$;


-- The schedule. One row a job, whose lock decides which orchestrator looks for its slots; one row a
-- slot, so that each runs once, whoever looks and however often.

create table schedule_jobs (
    job           text primary key,
    looked_until  timestamptz not null,        -- slots up to here have rows, or were missed
    paused_at     timestamptz,
    paused_by     text not null default '',
    paused_reason text not null default ''
);

create table schedule_slots (
    job      text not null,
    slot     timestamptz not null,
    session  date not null,
    as_of    date not null,
    accounts text[] not null,                  -- those that its cycle may trade
    request  bytea not null,                   -- what is asked for, as JSON, exactly as it is sent
    outcome  text not null check (outcome in ('due', 'accepted', 'rejected', 'skipped')),
    late     boolean not null,                 -- made up for: its accounts wait until it has ended
    missed   int not null default 0,           -- earlier slots that never ran
    by_whom  text not null default '',         -- empty: the clock
    cycle_id uuid,
    reason   text not null default '',
    made_at  timestamptz not null default clock_timestamp(),
    primary key (job, slot)
);
create index schedule_slots_due on schedule_slots (slot) where outcome = 'due';
create index schedule_slots_late on schedule_slots (slot) where late and outcome = 'accepted';


-- Strategies

-- Large bodies, such as trained models, in parts, under the SHA-256 of the whole. Whoever reads one
-- compares the hash, so a part need not be trusted here; nobody changes or removes one. One that is
-- kept again is as if it were new: retention looks at when it was kept last.
create table bodies (
    sha256     bytea not null check (octet_length(sha256) = 32),
    part       int not null check (part >= 0),
    parts      int not null check (parts > part),
    bytes      bytea not null check (octet_length(bytes) <= 256000),
    kept_at    timestamptz not null default clock_timestamp(),
    primary key (sha256, part)
);

-- Every strategy that was designed, one row a design of a cycle, and which operation said what of it.
-- A strategy counts as tried once it is trained: from then on somebody has seen what it is worth.
create table strategies (
    cycle_id       uuid not null references cycles,
    name           text not null,
    spec_sha256    text not null check (spec_sha256 ~ '^[0-9a-f]{64}$'),
    as_of          date not null,
    designed_at    timestamptz not null default clock_timestamp(),
    design_op_id   uuid not null,
    train_op_id    uuid,
    backtest_op_id uuid,
    assess_op_id   uuid,
    sharpe_ratio   float8,
    primary key (cycle_id, name)
);
create index strategies_by_name on strategies (name, designed_at desc);
create index strategies_by_time on strategies (designed_at desc);
create index strategies_by_spec on strategies (spec_sha256);


-- The ledger: accounts, orders, fills and a double entry that the database itself keeps balanced.
-- Written by execution alone. Money is numeric in the account's currency; what is posted is whole
-- cents. `currency` (null: the account's own) and what begins with `foreign_` say what an amount was
-- before the exchange.

create table accounts (
    account       text primary key,
    currency      text not null check (currency ~ '^[A-Z]{3}$'),
    clock         date not null,               -- the newest as_of seen; it never goes back
    starting_cash numeric(20, 2) not null check (starting_cash > 0),
    limits        jsonb not null,              -- those at the opening; see limit_changes
    main          boolean not null default false,
    opened_on     date not null,               -- the session of the opening entry
    opened_at     timestamptz not null default clock_timestamp()
);
create unique index accounts_one_main on accounts (main) where main;

create function check_clock() returns trigger language plpgsql as $$
begin
    if new.clock < old.clock then
        raise exception 'the clock of account % stands at % and never goes back to %',
            old.account, old.clock, new.clock using errcode = 'check_violation';
    end if;
    return new;
end $$;
create trigger accounts_clock before update on accounts
    for each row execute function check_clock();

create table orders (
    order_id   uuid primary key,               -- uuid5(cycle, pipeline/leg): placed once, ever
    account    text not null references accounts,
    cycle_id   uuid not null,
    started_on date not null,                  -- the cycle's partition of state_events
    op_id      uuid not null,
    pipeline   text not null,
    ticker     text not null,
    sector     text not null,
    side       text not null check (side in ('buy', 'sell')),
    type       text not null check (type in ('market', 'stop')),
    quantity   numeric(20, 6) not null check (quantity > 0),
    hold       numeric(20, 2) not null check (hold >= 0),
    -- A stop order is `waiting` where a market order is `working`.
    status     text not null check (status in ('working', 'waiting', 'filled', 'rejected', 'cancelled')),
    reason     text not null default '',
    as_of      date not null,                  -- the session it was decided at
    placed_at  timestamptz not null default clock_timestamp(),
    currency   text,
    foreign_price numeric(20, 6),
    rate       numeric(20, 10) check (rate > 0),    -- the one it was sized at
    rate_on    date,
    -- What triggers a stop order, in the currency that the ticker trades in; of a sale, the price of
    -- the stop order that is placed on the rest once it is filled.
    stop_price numeric(20, 6) check (stop_price > 0),
    -- Whether an exit check proposed it: at most one an account, ticker and session.
    exit       boolean not null default false,
    constraint orders_foreign check (num_nulls(currency, foreign_price, rate, rate_on) in (0, 4)),
    constraint orders_stop check (type <> 'stop' or (side = 'sell' and stop_price is not null)),
    constraint orders_waits
        check (case type when 'stop' then status <> 'working' else status <> 'waiting' end),
    constraint orders_exit check (exit or (stop_price is null and type <> 'stop')),
    constraint orders_exit_sells check (side = 'sell' or not exit)
);
create index orders_working on orders (account) where status = 'working';
create index orders_of_account on orders (account, as_of);
create unique index orders_one_exit on orders (account, ticker, as_of)
    where exit and type = 'market' and status <> 'rejected';
create unique index orders_one_stop on orders (account, ticker)
    where type = 'stop' and status = 'waiting';
create index orders_stops on orders (account) where type = 'stop';

create function check_order_change() returns trigger language plpgsql as $$
begin
    if old.status not in ('working', 'waiting') then
        raise exception 'order % is % and stays so', old.order_id, old.status
            using errcode = 'check_violation';
    end if;
    return new;
end $$;
create trigger orders_end_once before update on orders
    for each row execute function check_order_change();

-- One thing that happened to the books. `key` says what, so that it cannot be posted twice.
create table entries (
    entry_id bigint generated always as identity primary key,
    account  text not null references accounts,
    key      text not null,                    -- open, fill/<order>, split/<ticker>/<day>, ...
    kind     text not null check (kind in ('open', 'fill', 'split', 'dividend')),
    session  date not null,                    -- when it took effect; the books as of a day look at it
    ticker   text,
    memo     text not null default '',
    at       timestamptz not null default clock_timestamp(),
    unique (account, key)
);
create index entries_by_session on entries (account, session);

-- Debit positive, credit negative; an entry's lines sum to zero. `quantity` is shares and only
-- moves in the book `position`, whose amount is what the shares cost.
create table postings (
    entry_id bigint not null references entries,
    line     smallint not null,
    account  text not null references accounts,
    book     text not null check (book in (
        'cash', 'position', 'fees', 'realised', 'dividends', 'capital', 'exchange')),
    ticker   text,
    amount   numeric(20, 2) not null,
    quantity numeric(20, 6) not null default 0,
    currency text check (currency ~ '^[A-Z]{3}$'),
    foreign_amount numeric(20, 2),
    primary key (entry_id, line),
    check ((book = 'position') = (ticker is not null)),
    check (book = 'position' or quantity = 0),
    constraint postings_foreign check ((currency is null) = (foreign_amount is null)),
    -- No account keeps foreign cash: every trade is exchanged at once.
    constraint postings_cash_is_own check (currency is null or book not in ('cash', 'capital'))
);

create table fills (
    order_id  uuid not null references orders,
    number    smallint not null default 1,
    entry_id  bigint not null unique references entries,
    price     numeric(20, 6) not null check (price > 0),
    quantity  numeric(20, 6) not null check (quantity > 0),
    fee       numeric(20, 2) not null check (fee >= 0),
    session   date not null,
    filled_at timestamptz not null default clock_timestamp(),
    currency  text,
    foreign_price numeric(20, 6),
    rate      numeric(20, 10) check (rate > 0),     -- the one it was exchanged at
    rate_on   date,
    foreign_fee numeric(20, 2),
    primary key (order_id, number),
    constraint fills_foreign
        check (num_nulls(currency, foreign_price, rate, rate_on, foreign_fee) in (0, 5))
);

-- What execution answered, stored with what it did: a repeated command gets the same answer.
create table executions (
    op_id          uuid primary key,
    account        text not null references accounts,
    command_sha256 text not null,
    result         jsonb not null,
    executed_at    timestamptz not null default clock_timestamp()
);

-- The sum of the postings, kept by a trigger alone. Here the database refuses what must never be:
-- cash below zero, and more shares sold than held.
create table balances (
    account  text not null references accounts,
    book     text not null,
    ticker   text not null default '',
    amount   numeric(20, 2) not null default 0,
    quantity numeric(20, 6) not null default 0,
    -- Of a position: the currency that it trades in, its cost there, and the session since which
    -- something of it was held without a break; that stays when it closes, until the next one opens.
    currency text,
    foreign_amount numeric(20, 2) not null default 0,
    opened_on date,
    primary key (account, book, ticker),
    constraint cash_not_negative check (book <> 'cash' or amount >= 0),
    constraint no_short_position check (quantity >= 0)
) with (fillfactor = 70);

create function post_to_balances() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    of_position boolean := new.book = 'position';
begin
    insert into balances (account, book, ticker)
        values (new.account, new.book, coalesce(new.ticker, '')) on conflict do nothing;
    if of_position and exists (
        select from balances where account = new.account and book = 'position'
            and ticker = new.ticker and quantity > 0 and currency is distinct from new.currency)
    then
        raise exception 'account % holds % in another currency than %',
            new.account, new.ticker, coalesce(new.currency, 'its own')
            using errcode = 'check_violation';
    end if;
    update balances set
        amount = amount + new.amount,
        quantity = quantity + new.quantity,
        currency = case when of_position then new.currency end,
        foreign_amount = case when of_position
            then foreign_amount + coalesce(new.foreign_amount, 0) else 0 end,
        opened_on = case when of_position and quantity = 0 and new.quantity > 0
            then (select session from entries where entry_id = new.entry_id) else opened_on end
        where account = new.account and book = new.book and ticker = coalesce(new.ticker, '');
    return null;
end $$;
create trigger postings_to_balances after insert on postings
    for each row execute function post_to_balances();

-- Balanced in every currency, each both as it was traded and in the account's currency.
create function check_entry() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    lines int;
    strangers int;
    unbalanced text;
begin
    select count(p.entry_id),
           count(*) filter (where p.account <> e.account or p.currency = a.currency)
        into lines, strangers
        from entries e join accounts a using (account) left join postings p using (entry_id)
        where e.entry_id = new.entry_id;
    select string_agg(coalesce(own.currency, 'the account''s') || ': ' || own.amount || ' of '
                      || own.foreign_amount, ', ')
        into unbalanced
        from (select p.currency, sum(p.amount) as amount,
                     coalesce(sum(p.foreign_amount), 0) as foreign_amount
              from postings p where p.entry_id = new.entry_id group by p.currency) own
        where own.amount <> 0 or own.foreign_amount <> 0;
    if lines = 0 or strangers > 0 or unbalanced is not null then
        raise exception 'entry % is not balanced: % lines, % of another account or wrongly foreign,'
            ' left over in currency %', new.entry_id, lines, strangers, coalesce(unbalanced, 'none')
            using errcode = 'check_violation';
    end if;
    return null;
end $$;
create constraint trigger entries_balanced after insert on entries
    deferrable initially deferred for each row execute function check_entry();
create constraint trigger postings_balanced after insert on postings
    deferrable initially deferred for each row execute function check_entry();

-- The newest books of every account, as people look at them.
create view positions as
select account, ticker, quantity, amount as cost from balances
where book = 'position' and quantity > 0;

-- One row an account and session that its clock has passed, at that session's closes, written by
-- the transaction that moves the clock. Null where `unpriced` names what nobody can value.
create table snapshots (
    account        text not null references accounts,
    session        date not null,
    cash           numeric(20, 2) not null check (cash >= 0),
    positions      numeric(20, 6),
    equity         numeric(20, 6) check (equity = cash + positions),
    realised       numeric(20, 2) not null,    -- gains, dividends and fees since the opening
    unrealised     numeric(20, 6),
    dividends      numeric(20, 2) not null,
    fees           numeric(20, 2) not null,
    exposure_gross numeric(20, 6),
    exposure_net   numeric(20, 6),
    unpriced       text[] not null default '{}',
    at             timestamptz not null default clock_timestamp(),
    -- The stop orders that were open at the close: an order's row says only how it is now.
    -- Each is {ticker, quantity, stop_price, currency, as_of}; amounts are text, exact to the last
    -- digit, here and in `closes`.
    stops          jsonb not null default '[]',
    -- What each position was valued at: a share that has no price any more keeps its last known one.
    -- Each is {ticker, price, currency, amount, rate, rate_on, priced_on}; `priced_on` is null where
    -- the price is the session's own close.
    closes         jsonb not null default '[]',
    primary key (account, session),
    check (num_nulls(positions, equity, unrealised, exposure_gross, exposure_net)
           = case when unpriced = '{}' then 0 else 5 end)
);


-- The kill switch, and the limits as they change. Written by execution alone.

-- Every change is a row for ever; the newest one of an account (null: of all accounts) says how it
-- stands.
create table halt_changes (
    change_id uuid primary key default gen_random_uuid(),
    number    bigint generated always as identity,
    account   text references accounts,
    halted    boolean not null,
    reason    text not null,
    by_whom   text not null,                   -- the identity that asked, as NATS enforces it
    at        timestamptz not null default clock_timestamp()
);
create index halt_changes_newest on halt_changes (account, number desc);

create view halts as
select account, reason, by_whom, at
from (select distinct on (account) * from halt_changes order by account, number desc) newest
where halted;

-- Whoever places or fills a buy holds this lock in shared mode until it commits; a halt takes it
-- alone. So a halt waits for the buys under way, and none begins behind its back. It is a table's
-- and no advisory lock: anybody may take one of those, and hold all buys up with it.
create table halt_lock (nothing boolean);
create function hold_halts() returns void language sql as $$
    lock table halt_lock in row share mode;
$$;
create function change_halts() returns void language sql as $$
    lock table halt_lock in exclusive mode;
$$;

-- The last line: whatever the code above it believes, no buy gets past a halt.
create function refuse_halted_buy() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $$
begin
    if new.side = 'buy' and new.status in ('working', 'filled') then
        perform hold_halts();
        if exists (select from halts where account is null or account = new.account) then
            raise exception 'account % is halted: buy order % may not be %',
                new.account, new.order_id, new.status using errcode = 'check_violation';
        end if;
    end if;
    return new;
end $$;
create trigger orders_not_while_halted before insert or update on orders
    for each row execute function refuse_halted_buy();

-- The limits in force come from the settings. What they were is kept: accounts.limits at the
-- opening, then one row for every change that execution has met.
create table limit_changes (
    number  bigint generated always as identity primary key,
    account text not null references accounts,
    limits  jsonb not null,
    at      timestamptz not null default clock_timestamp()
);
create index limit_changes_newest on limit_changes (account, number desc);

create function limits_of(wanted text) returns jsonb language sql stable as $$
    select coalesce(
        (select l.limits from limit_changes l where l.account = wanted order by number desc limit 1),
        (select a.limits from accounts a where a.account = wanted)
    );
$$;


-- What is written once and stays

create function refuse_change() returns trigger language plpgsql as $$
begin
    raise exception '% is append-only: post a correcting entry instead', tg_table_name
        using errcode = 'insufficient_privilege';
end $$;
create trigger entries_append_only before update or delete or truncate on entries
    for each statement execute function refuse_change();
create trigger postings_append_only before update or delete or truncate on postings
    for each statement execute function refuse_change();
create trigger fills_append_only before update or delete or truncate on fills
    for each statement execute function refuse_change();
create trigger executions_append_only before update or delete or truncate on executions
    for each statement execute function refuse_change();
create trigger snapshots_append_only before update or delete or truncate on snapshots
    for each statement execute function refuse_change();
create trigger halt_changes_append_only before update or delete or truncate on halt_changes
    for each statement execute function refuse_change();
create trigger limit_changes_append_only before update or delete or truncate on limit_changes
    for each statement execute function refuse_change();


-- What each role may do; a function is nobody's but whom it is granted to.

revoke all on all tables in schema public from public;
revoke execute on all functions in schema public from public;
grant usage on schema public to deskbus_orchestrator, deskbus_execution, deskbus_console;
-- Programs that do not know a migration look here whether they may start beside it.
grant select on schema_migrations to deskbus_orchestrator, deskbus_execution;

grant select, insert, update on cycles, operations, day_budgets, paces, schedule_jobs,
    schedule_slots, strategies to deskbus_orchestrator;
grant select, insert on journal, state_events, outages, bodies to deskbus_orchestrator;
grant update (kept_at) on bodies to deskbus_orchestrator;
grant select, update on relay_cursor, desk_clock to deskbus_orchestrator;
grant execute on function ensure_partitions(date), refuse_stale(bigint, int), desk_now()
    to deskbus_orchestrator;
grant execute on function can_commit() to deskbus_orchestrator, deskbus_execution, deskbus_console;

grant select, insert on accounts, orders, entries, postings, fills, executions, snapshots,
    halt_changes, limit_changes to deskbus_execution;
grant update (clock) on accounts to deskbus_execution;
grant update (quantity, status, reason, stop_price) on orders to deskbus_execution;
grant select on balances, positions, halts, commands_on_record to deskbus_execution;
grant update on halt_lock to deskbus_execution;
grant execute on function hold_halts(), change_halts(), limits_of(text) to deskbus_execution;
grant insert on state_events to deskbus_execution;
-- on conflict do nothing needs to read the key it compares
grant select (started_on, op_id, seq) on state_events to deskbus_execution;

-- The console reads all tables, those of later months and migrations too.
grant select on all tables in schema public to deskbus_console;
revoke all on halt_lock from deskbus_console;
alter default privileges in schema public grant select on tables to deskbus_console;
grant execute on function limits_of(text), cost(numeric, boolean) to deskbus_console;
