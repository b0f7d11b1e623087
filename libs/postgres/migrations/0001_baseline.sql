-- All tables of Deskbus 0.2. Run as their owner. The roles deskbus_orchestrator, deskbus_execution,
-- deskbus_console and deskbus_study exist; the part before the views says what each of them may do.


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

-- How many live cycles are at work: those that are neither a study's cells nor wait for a person. A
-- strategy cycle takes hours, and has a process of its own.
create function live_at_work() returns bigint language sql stable as $$
    select count(*) from cycles
    where status = 'running' and requester <> 'study' and waiting_since is null and kind <> 'strategy'
$$;

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
    -- Of a study's cell: since when its command rests, while a live cycle is at work. Such a row is
    -- pending, is not swept, and its time limit stands; it is sent when no live cycle is at work.
    rests_since  timestamptz,
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
-- An account's decisions, the newest first, however many the others have made since.
create index operations_decided_for on operations (account, finished_at desc)
    where step in ('validate', 'validate_exits') and status = 'completed';
create index operations_resting on operations (rests_since)
    where rests_since is not null and status = 'pending';
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


-- The journal of calls, the prompts and the events

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

-- What models were sent: system prompts, tools, answer schemas and messages, each text once a month
-- under its SHA-256, however many calls refer to it. Kept by month as the journal is, so that a month
-- goes with all that its calls refer to.
create table prompt_texts (
    started_on date not null check (extract(day from started_on) = 1),   -- the month of the cycle
    sha256     bytea not null check (octet_length(sha256) = 32),
    text       text not null,
    primary key (started_on, sha256)
) partition by range (started_on);
create table prompt_texts_rest partition of prompt_texts default;

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
    starting_cash numeric(20, 2) not null check (starting_cash >= 0),  -- 0: it opened with holdings
    limits        jsonb not null,              -- those at the opening; see limit_changes
    main          boolean not null default false,
    opened_on     date not null,               -- the session of the opening entry
    opened_at     timestamptz not null default clock_timestamp(),
    -- The broker and its number of the account that this one is bound to. Nobody may update them: an
    -- account is bound when it is opened, or never.
    venue         text,
    venue_account text unique,
    constraint accounts_bound check (num_nulls(venue, venue_account) in (0, 2)),
    constraint accounts_bound_in_dollars check (venue is null or currency = 'USD')
);
create unique index accounts_one_main on accounts (main) where main;

create function is_bound(wanted text) returns boolean
language sql stable security definer set search_path = public, pg_temp as $$
    select venue is not null from accounts where account = wanted;
$$;

-- What the orchestrator may know of accounts: up to which session each has seen. A request for an
-- earlier one is refused before it is a cycle.
create view account_clocks as select account, clock, venue is not null as bound from accounts;

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
    -- What triggers a stop order, in the currency that the ticker trades in; of a market order, the
    -- price of the stop order that is placed once it is filled.
    stop_price numeric(20, 6) check (stop_price > 0),
    plan       jsonb,                          -- of a buy: its ExitPlan
    thesis     text not null default '',
    -- Whether an exit check proposed it: at most one an account, ticker and session.
    exit       boolean not null default false,
    -- What an exit's sale acts on: the rules that fired, the calendar month that their signal is of, and
    -- how many shares of how many were to be sold. So a signal of a month acts once, whoever checks how
    -- often. Null of other orders.
    exit_rules text[],
    exit_month text check (exit_month ~ '^\d{4}-(0[1-9]|1[0-2])$'),
    exit_held  numeric(20, 6) check (exit_held > 0),
    exit_asked numeric(20, 6) check (exit_asked >= 0),
    constraint orders_foreign check (num_nulls(currency, foreign_price, rate, rate_on) in (0, 4)),
    constraint orders_stop check (type <> 'stop' or (side = 'sell' and stop_price is not null)),
    constraint orders_waits
        check (case type when 'stop' then status <> 'working' else status <> 'waiting' end),
    constraint orders_stop_of
        check (stop_price is null or exit or side = 'buy' or type = 'stop'),
    constraint orders_plan check (plan is null or side = 'buy'),
    constraint orders_exit_sells check (side = 'sell' or not exit),
    constraint orders_acts
        check (num_nulls(exit_rules, exit_month, exit_held, exit_asked) in (0, 4)),
    constraint orders_acts_of_exits
        check (exit_rules is null or (exit and type = 'market' and exit_rules <> '{}'))
);
create index orders_working on orders (account) where status = 'working';
create index orders_of_account on orders (account, as_of);
create unique index orders_one_exit on orders (account, ticker, as_of)
    where exit and type = 'market' and status <> 'rejected';
create unique index orders_one_stop on orders (account, ticker)
    where type = 'stop' and status = 'waiting';
create index orders_stops on orders (account) where type = 'stop';
create index orders_acted on orders (account, ticker, as_of) where exit_rules is not null;

create function check_order_change() returns trigger language plpgsql as $$
begin
    -- What a broker fills after the end is told in the order's reason; the end stays.
    if old.status not in ('working', 'waiting')
       and not (new.status = old.status and is_bound(old.account)) then
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
    -- open, fill/<order>, split/<ticker>/<day>, ...; of a bound account fill/<the broker's id of the fill>
    key      text not null,
    kind     text not null check (kind in (
        'open', 'fill', 'split', 'dividend', 'deposit', 'withdrawal', 'adjustment')),
    session  date not null,                    -- when it took effect; the books as of a day look at it
    ticker   text,
    -- The sector of holdings that an owner brought in, as the market source had it then: they have no
    -- order that says it. Null of all other entries, and where the source had none.
    sector   text,
    memo     text not null default '',
    at       timestamptz not null default clock_timestamp(),
    unique (account, key)
);
create index entries_by_session on entries (account, session);
-- The newest entry of an account's ledger, however long it is.
create index entries_newest on entries (account, entry_id);

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
-- cash below zero, and more shares sold than held. Not of an account that is bound to a broker: what
-- was filled there is true, and is booked; what is refused there is to send more.
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
    bound     boolean not null default false,
    primary key (account, book, ticker),
    constraint cash_not_negative check (bound or book <> 'cash' or amount >= 0),
    constraint no_short_position check (bound or quantity >= 0)
) with (fillfactor = 70);

create function post_to_balances() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    of_position boolean := new.book = 'position';
begin
    insert into balances (account, book, ticker, bound)
        values (new.account, new.book, coalesce(new.ticker, ''), is_bound(new.account))
        on conflict do nothing;
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

-- One row an account and session that its clock has passed, at that session's closes, written by
-- the transaction that moves the clock. Null where `unpriced` names what nobody can value.
create table snapshots (
    account        text not null references accounts,
    session        date not null,
    cash           numeric(20, 2) not null,
    positions      numeric(20, 6),
    equity         numeric(20, 6) check (equity = cash + positions),
    realised       numeric(20, 2) not null,    -- gains, dividends and fees since the opening
    unrealised     numeric(20, 6),
    dividends      numeric(20, 2) not null,
    fees           numeric(20, 2) not null,
    -- What the owner had paid in by then, less what was taken out: cash, and holdings at their cost.
    paid_in        numeric(20, 2) not null,
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

create function check_snapshot() returns trigger language plpgsql as $$
begin
    if new.cash < 0 and not is_bound(new.account) then
        raise exception 'account % has % in cash at %', new.account, new.cash, new.session
            using errcode = 'check_violation', constraint = 'snapshots_cash_check';
    end if;
    return new;
end $$;
create trigger snapshots_cash before insert on snapshots
    for each row execute function check_snapshot();


-- Orders at a broker, of accounts that are bound to one. Written by execution alone.

-- One row an order that is for the broker, in the transaction of the order. Its id is the client order
-- id there: the same for ever, and sent again where an answer was unclear.
create table venue_orders (
    order_id    uuid primary key references orders,
    account     text not null references accounts,
    ticker      text not null,
    side        text not null check (side in ('buy', 'sell')),
    quantity    numeric(20, 6) not null check (quantity > 0),
    terms       jsonb not null,                -- its VenueTerms, as they were decided and approved
    session     date not null,                 -- the one that it is for
    send_by     timestamptz not null,          -- after it nothing is sent
    state       text not null default 'intent'
        check (state in ('intent', 'sent', 'known', 'over', 'never')),
    tries       int not null default 0,        -- how often it may have been sent
    lease_until timestamptz,                   -- until then whoever took it may be sending
    cancel      text not null default '',      -- why somebody wants it cancelled
    broker_id   text unique,
    status      text not null default '',      -- the broker's word
    filled      numeric(20, 6) not null default 0,  -- as the broker says
    words       text not null default '',      -- the broker's, or why there is no answer
    placed_at   timestamptz not null default clock_timestamp(),
    sent_at     timestamptz,                   -- the first time
    told_at     timestamptz                    -- when people were told that it is unresolved
);
create index venue_orders_live on venue_orders (account, state) where state in ('intent', 'sent', 'known');
create index venue_orders_newest on venue_orders (placed_at desc);
-- One order a ticker is at the broker, or on its way: no exit is sent twice, and none beside a buy.
create unique index venue_orders_one_a_ticker on venue_orders (account, ticker)
    where state in ('sent', 'known');

-- What became of each, for ever.
create table venue_order_changes (
    order_id uuid not null references venue_orders,
    number   bigint generated always as identity,
    at       timestamptz not null default clock_timestamp(),
    state    text not null,
    status   text not null,
    filled   numeric(20, 6) not null,
    words    text not null,
    primary key (order_id, number)
);

-- A look at the broker's books: what differs, or why there was no answer. `blocks`: nothing is bought
-- until a later look agrees.
create table looks (
    number      bigint generated always as identity primary key,
    account     text not null references accounts,
    at          timestamptz not null,          -- the desk's clock when it began
    verdict     text not null check (verdict in ('agrees', 'differs', 'unknown')),
    blocks      boolean not null default false,
    cash        numeric(20, 6),                -- the broker's
    positions   jsonb not null default '{}',   -- the broker's shares by ticker
    differences jsonb not null default '[]',
    note        text not null default '',
    by_whom     text not null default 'execution',
    reason      text not null default '',      -- of a person who reconciled
    kept_at     timestamptz not null default clock_timestamp(),
    constraint looks_blocks check (verdict = 'differs' or not blocks)
);
create index looks_newest on looks (account, number desc);

-- What happened at the broker that was no trade: a dividend, a fee, cash moved. What was there before
-- the binding is kept as seen, and never booked.
create table venue_moves (
    account  text not null references accounts,
    move_id  text not null,
    cause    text not null,
    amount   numeric(20, 6) not null,
    ticker   text not null default '',
    booked   boolean not null,
    at       timestamptz not null default clock_timestamp(),
    primary key (account, move_id)
);

-- Monotone; and the last line before a broker: no buy is sent past a halt or a difference, nothing that
-- is wanted cancelled is sent, and nothing after its end.
create function check_venue_order() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    states constant text[] := array['intent', 'sent', 'known', 'over', 'never'];
begin
    if array_position(states, new.state) < array_position(states, old.state)
       or (old.state = 'over' and new.state = 'never')
       or (old.state = 'known' and new.state = 'never')
       or new.filled < old.filled or new.tries < old.tries then
        raise exception 'venue order % is % with % filled and does not become % with %',
            old.order_id, old.state, old.filled, new.state, new.filled
            using errcode = 'check_violation';
    end if;
    if new.tries > old.tries then
        if old.state not in ('intent', 'sent') or new.state <> 'sent' or new.cancel <> '' then
            raise exception 'venue order % is % and is not sent', old.order_id, old.state
                using errcode = 'check_violation';
        end if;
        if new.side = 'buy' then
            perform hold_halts();
            if exists (select from blocks where account is null or account = new.account) then
                raise exception 'account % is halted: buy order % is not sent',
                    new.account, new.order_id using errcode = 'check_violation';
            end if;
        end if;
    end if;
    return new;
end $$;
create function keep_venue_order() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $$
begin
    if tg_op = 'INSERT' or (new.state, new.status, new.filled, new.words)
                           is distinct from (old.state, old.status, old.filled, old.words) then
        insert into venue_order_changes (order_id, state, status, filled, words)
            values (new.order_id, new.state, new.status, new.filled, new.words);
    end if;
    return null;
end $$;
create trigger venue_orders_monotone before update on venue_orders
    for each row execute function check_venue_order();
create trigger venue_orders_kept after insert or update on venue_orders
    for each row execute function keep_venue_order();


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

-- What blocks buys: a halt, or books that differ from the broker's by the newest look with an answer;
-- since the first look that found so, however often they are looked at.
create view blocks as
select account, reason, by_whom, at from halts
union all
select account, 'the books differ from the broker''s', 'execution', (
    select min(since.at) from looks since
    where since.account = newest.account and since.blocks and since.number > coalesce((
        select max(number) from looks
        where account = newest.account and verdict <> 'unknown' and not blocks
    ), 0)
)
from (select distinct on (account) * from looks where verdict <> 'unknown'
      order by account, number desc) newest
where blocks;

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
    -- What a broker has filled is true, and is booked.
    if new.side = 'buy' and new.status in ('working', 'filled')
       and not (tg_op = 'UPDATE' and is_bound(new.account)) then
        perform hold_halts();
        if exists (select from blocks where account is null or account = new.account) then
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


-- Messages to people: one row a notice and channel, and what became of it. NATS holds what waits; the
-- orchestrator keeps this record for the notifier, which has no database.
create table notifications (
    event_id   uuid not null,
    channel    text not null,
    number     bigint generated always as identity,
    notice     jsonb not null,                 -- a Notice, as it was composed
    event_at   timestamptz not null,
    kept_at    timestamptz not null default clock_timestamp(),
    due_at     timestamptz not null,
    status     text not null default 'due' check (status in ('due', 'sent', 'given_up')),
    tries      int not null default 0,
    tried_at   timestamptz,                    -- the first try that failed
    error_code text not null default '',      -- of the last try
    ended_at   timestamptz,
    primary key (event_id, channel),
    check ((status = 'due') = (ended_at is null))
);
create index notifications_due on notifications (channel, due_at) where status = 'due';
create index notifications_ended on notifications (ended_at) where status <> 'due';

-- Up to which dead letter all are told as events; null before the first look.
create table letter_cursor (
    one      boolean primary key default true check (one),
    sequence bigint
);
insert into letter_cursor default values;


-- Studies: parents of decision cycles

-- `body` is the file as it was accepted, as JSON; `next_cell` is how many of its cells were asked for,
-- in order.
create table studies (
    study_id   uuid primary key,
    name       text not null unique,
    sha256     text not null,
    body       bytea not null,
    offline    boolean not null default false,
    status     text not null default 'running' check (status in ('running', 'stopped', 'completed')),
    reason     text not null default '',
    cells      int not null,
    next_cell  int not null default 0,
    -- Further rounds: what failed for a reason that can pass is asked for again, as another cycle, whose
    -- key ends with the round. Cells of rounds before `first_round` no longer count: a path begins anew,
    -- in new accounts.
    round       int not null default 1,
    first_round int not null default 1,
    refused    int not null default 0,         -- cells that the desk would not begin, and why the first
    refusal    text not null default '',
    started_at timestamptz not null default clock_timestamp(),
    ended_at   timestamptz
);

-- Their cells are the cycles that `study` asked for, under keys that begin with the study's name.
create index cycles_of_study on cycles (split_part(idempotency_key, '/', 1), accepted_at)
    where requester = 'study';
create view study_cells as
select split_part(c.idempotency_key, '/', 1) as study, split_part(c.idempotency_key, '/', 3)::int as number,
       split_part(c.idempotency_key, '/', 4)::int as sample, c.cycle_id, c.kind, c.as_of, c.status,
       c.reason, c.accepted_at, c.ended_at, c.tokens_max, c.cost_usd_max, c.tokens_spent, c.cost_usd_spent,
       c.unpriced,
       coalesce(nullif(split_part(c.idempotency_key, '/', 5), ''), '1')::int as round
from cycles c where c.requester = 'study';

-- Each cell as it stands: by its newest cycle.
create view study_cells_now as
select distinct on (c.study, c.kind, c.number, c.sample) c.*
from study_cells c join studies s on s.name = c.study
where c.round >= s.first_round
order by c.study, c.kind, c.number, c.sample, c.round desc;

-- Answers of models that a study has paid for, by what was asked of whom: never paid again. They are
-- kept for as long as DESKBUS_STUDY_ANSWERS_KEPT_S says, the oldest go.
create table study_answers (
    address bytea primary key,
    reply   bytea not null,                    -- as JSON, as the journal has it
    op_id   uuid not null,                     -- whose call it was
    index   int not null,
    kept_at timestamptz not null default clock_timestamp()
);
create index study_answers_by_age on study_answers (kept_at);


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
create trigger venue_order_changes_append_only before update or delete or truncate on venue_order_changes
    for each statement execute function refuse_change();
-- Old ones that nothing refers to are deleted by `deskbus db retain`: only the owner may.
create trigger looks_append_only before update or truncate on looks
    for each statement execute function refuse_change();
create trigger venue_moves_append_only before update or delete or truncate on venue_moves
    for each statement execute function refuse_change();
create trigger limit_changes_append_only before update or delete or truncate on limit_changes
    for each statement execute function refuse_change();


-- What each role may do; a function is nobody's but whom it is granted to.

revoke all on all tables in schema public from public;
revoke execute on all functions in schema public from public;
grant usage on schema public
    to deskbus_orchestrator, deskbus_execution, deskbus_console, deskbus_study;
-- Programs that do not know a migration look here whether they may start beside it.
grant select on schema_migrations to deskbus_orchestrator, deskbus_execution, deskbus_study;

grant select, insert, update on cycles, operations, day_budgets, paces, schedule_jobs,
    schedule_slots, strategies to deskbus_orchestrator;
grant select, insert on journal, prompt_texts, state_events, outages, bodies to deskbus_orchestrator;
grant update (kept_at) on bodies to deskbus_orchestrator;
grant select, insert, update, delete on notifications to deskbus_orchestrator;
grant select, insert, delete on study_answers to deskbus_orchestrator;
grant select, update on relay_cursor, desk_clock, letter_cursor to deskbus_orchestrator;
grant select on account_clocks to deskbus_orchestrator;
grant execute on function ensure_partitions(date), desk_now(),
    live_at_work() to deskbus_orchestrator;
grant execute on function can_commit()
    to deskbus_orchestrator, deskbus_execution, deskbus_console, deskbus_study;

grant select, insert on accounts, orders, entries, postings, fills, executions, snapshots,
    halt_changes, limit_changes, venue_orders, looks, venue_moves to deskbus_execution;
grant update (clock) on accounts to deskbus_execution;
grant update (quantity, status, reason, stop_price) on orders to deskbus_execution;
grant update (state, tries, lease_until, cancel, broker_id, status, filled, words, sent_at, told_at)
    on venue_orders to deskbus_execution;
grant select on venue_order_changes, balances, halts, blocks, commands_on_record to deskbus_execution;
grant update on halt_lock to deskbus_execution;
grant execute on function hold_halts(), change_halts(), limits_of(text), is_bound(text)
    to deskbus_execution;
grant insert on state_events to deskbus_execution;
-- on conflict do nothing needs to read the key it compares
grant select (started_on, op_id, seq) on state_events to deskbus_execution;

-- The console reads all tables, those of later months and migrations too.
grant select on all tables in schema public to deskbus_console;
revoke all on halt_lock from deskbus_console;
alter default privileges in schema public grant select on tables to deskbus_console;
grant execute on function limits_of(text), cost(numeric, boolean) to deskbus_console;

-- Studies write what they are, and read what the desk made of their cells.
grant select, insert, update on studies to deskbus_study;
grant select on study_cells, study_cells_now, cycles, operations, journal, accounts, snapshots, strategies
    to deskbus_study;
grant execute on function cost(numeric, boolean), live_at_work() to deskbus_study;


-- Views for readers with SQL

-- For people who query the record with SQL (docs/sql.md). The tables may change with any release;
-- views and their columns are only added. Bodies are jsonb and hashes hex. deskbus_console, which may
-- read all tables, may read them, and no other role. No view calls a function of the desk: its reader
-- would need the right to call it too.

create schema desk;
comment on schema desk is 'The record for readers with SQL: see docs/sql.md.';


create view desk.cycles as
select c.cycle_id, c.kind, c.as_of, c.status, nullif(c.reason, '') as reason, c.requester,
       c.idempotency_key, convert_from(c.request, 'UTF8')::jsonb as request, c.accepted_at,
       c.deadline_at, c.ended_at, c.tokens_spent as tokens, c.tokens_max,
       case when not c.unpriced then c.cost_usd_spent end as cost_usd, c.cost_usd_max, c.data_version
from public.cycles c;

comment on view desk.cycles is 'One row per cycle.';
comment on column desk.cycles.cycle_id is 'Id of the cycle';
comment on column desk.cycles.kind is 'decision, exit, strategy, snapshot, report or probe';
comment on column desk.cycles.as_of is 'Session of the decision: the cycle sees nothing later';
comment on column desk.cycles.status is 'running, completed, failed, cancelled, rejected or expired';
comment on column desk.cycles.reason is 'Why it did not complete; null where it did';
comment on column desk.cycles.requester is 'Identity that requested it; study for cells of a study';
comment on column desk.cycles.idempotency_key is 'Key of the request: the same key is never run twice';
comment on column desk.cycles.request is 'The request as it was accepted';
comment on column desk.cycles.accepted_at is 'Time of acceptance';
comment on column desk.cycles.deadline_at is 'End of its time limit; waiting for a person moves it';
comment on column desk.cycles.ended_at is 'Time of its end; null while it runs';
comment on column desk.cycles.tokens is 'Tokens of all its model calls';
comment on column desk.cycles.tokens_max is 'Its token budget';
comment on column desk.cycles.cost_usd is 'Cost of its model calls; null where a model has no known price';
comment on column desk.cycles.cost_usd_max is 'Its cost budget';
comment on column desk.cycles.data_version is 'State of the market data that it read; null of a live source';


create view desk.operations as
select c.cycle_id as op_id, null::uuid as parent_id, c.cycle_id,
       case c.kind when 'strategy' then 'agent_research' else 'cycle' end as type, c.kind as name,
       case when c.status in ('rejected', 'expired') then 'failed' else c.status end as status,
       null::text as pipeline, null::text as account, null::text as state,
       'orchestrator' as service, 1 as attempt, c.as_of,
       case c.status when 'completed' then 100 else 0 end::numeric as progress_pct,
       ''::text as progress_step, convert_from(c.request, 'UTF8')::jsonb as request,
       null::jsonb as result,
       case when c.status not in ('running', 'completed') then nullif(c.reason, '') end
           as error_message,
       c.tokens_spent as tokens, case when not c.unpriced then c.cost_usd_spent end as cost_usd,
       c.accepted_at as created_at, c.accepted_at as started_at, c.ended_at as finished_at
from public.cycles c
union all
select o.op_id, o.cycle_id, o.cycle_id,
       case o.step when 'design' then 'agent_design' when 'train' then 'training'
           when 'backtest' then 'backtesting' when 'assess' then 'agent_assessment'
           else 'operation' end,
       o.step, o.status, o.pipeline, o.account, o.state, o.service, o.attempt, o.as_of,
       case o.status when 'completed' then 100
           else coalesce((o.progress ->> 'percentage')::numeric, 0) end,
       coalesce(o.progress ->> 'step', ''), convert_from(o.command, 'UTF8')::jsonb,
       convert_from(o.result, 'UTF8')::jsonb, o.failure ->> 'message', o.tokens,
       case when not o.unpriced then o.cost_usd end, o.created_at, o.started_at, o.finished_at
from public.operations o;

comment on view desk.operations is 'One row per operation, and one per cycle: the parent of its operations.';
comment on column desk.operations.op_id is 'Id of the operation; of a cycle, the cycle''s id';
comment on column desk.operations.parent_id is 'The cycle; null for a cycle';
comment on column desk.operations.cycle_id is 'The cycle';
comment on column desk.operations.type is
    'cycle or operation; of a strategy cycle agent_research, agent_design, training, backtesting, agent_assessment';
comment on column desk.operations.name is 'Kind of the cycle, or step of the operation: plan, picks, execute';
comment on column desk.operations.status is 'pending, running, completed, failed or cancelled';
comment on column desk.operations.pipeline is 'Pipeline; shared for steps that all pipelines share';
comment on column desk.operations.account is 'Account that the pipeline trades';
comment on column desk.operations.state is 'State of the workflow: scanning, planning, deciding';
comment on column desk.operations.service is 'Service that does it';
comment on column desk.operations.attempt is 'Number of the attempt, from 1';
comment on column desk.operations.as_of is 'Session of the decision';
comment on column desk.operations.progress_pct is 'Progress, 0 to 100';
comment on column desk.operations.progress_step is 'What it is doing';
comment on column desk.operations.request is 'Input: the request of a cycle, the command of an operation';
comment on column desk.operations.result is 'Output: the contract of an operation; null for a cycle';
comment on column desk.operations.error_message is 'Why it failed or was cancelled';
comment on column desk.operations.tokens is 'Tokens of its model calls';
comment on column desk.operations.cost_usd is 'Cost of its model calls; null where a model has no known price';
comment on column desk.operations.created_at is 'Time it was made';
comment on column desk.operations.started_at is 'Time a service took it; null before';
comment on column desk.operations.finished_at is 'Time of its end; null before';


-- The journal with its entries read once: what the three views of calls stand on, and no reader.
create view public.journal_calls as
select o.started_on, o.cycle_id, j.op_id, j.index, o.pipeline, o.account, o.as_of, o.state, o.step, e.call,
       e.call ->> 'kind' as kind, e.call ->> 'name' as name, e.call -> 'request' as request,
       (e.call ->> 'duration_ms')::numeric as duration_ms, j.recorded_at
from public.operations o
join public.journal j on j.started_on = o.started_on and j.op_id = o.op_id
cross join lateral (select convert_from(j.entry, 'UTF8')::jsonb as call offset 0) e;


create view desk.calls as
select c.cycle_id, c.op_id, c.index, c.pipeline, c.account, c.as_of, c.state, c.step, c.kind, c.name, c.request,
       c.call -> 'reply' as reply,
       case c.kind when 'model' then c.call #>> '{reply,fault,code}'
           when 'tool' then c.call #>> '{reply,error,code}' end as fault,
       (c.call ->> 'passed')::boolean as passed, c.duration_ms, c.recorded_at
from public.journal_calls c;

comment on view desk.calls is 'One row per journalled call: model turn, tool result or other read.';
comment on column desk.calls.cycle_id is 'The cycle';
comment on column desk.calls.op_id is 'The operation that made the call';
comment on column desk.calls.index is 'Number of the call in its operation, from 0';
comment on column desk.calls.pipeline is 'Pipeline';
comment on column desk.calls.account is 'Account that the pipeline trades';
comment on column desk.calls.as_of is 'Session of the decision';
comment on column desk.calls.state is 'State of the workflow';
comment on column desk.calls.step is 'Step of the operation';
comment on column desk.calls.kind is 'model, tool or read';
comment on column desk.calls.name is 'Tool or read; of a model, provider:model';
comment on column desk.calls.request is 'What was asked; of a model, the hashes of the texts it was sent (see prompts)';
comment on column desk.calls.reply is 'The reply';
comment on column desk.calls.fault is 'Code of the error; null where there was none';
comment on column desk.calls.passed is 'Whether an answer met its contract; null where nothing was checked';
comment on column desk.calls.duration_ms is 'Duration in milliseconds';
comment on column desk.calls.recorded_at is 'Time it was committed';


create view desk.model_calls as
select c.cycle_id, c.op_id, c.index, c.pipeline, c.account, c.as_of, c.state, c.step,
       c.request ->> 'agent' as agent, split_part(c.name, ':', 1) as provider,
       substr(c.name, position(':' in c.name) + 1) as model,
       u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens, u.unsorted_tokens,
       u.input_tokens + u.output_tokens + u.cache_read_tokens + u.cache_write_tokens + u.unsorted_tokens
           as tokens,
       (c.call #>> '{usage,cost_usd}')::numeric as cost_usd,
       coalesce((c.call ->> 'reused')::boolean, false) as reused, c.call #>> '{reply,fault,code}' as fault,
       c.duration_ms, c.recorded_at
from public.journal_calls c
cross join lateral (
    select coalesce((c.call #>> '{usage,input_tokens}')::bigint, 0) as input_tokens,
           coalesce((c.call #>> '{usage,output_tokens}')::bigint, 0) as output_tokens,
           coalesce((c.call #>> '{usage,cache_read_tokens}')::bigint, 0) as cache_read_tokens,
           coalesce((c.call #>> '{usage,cache_write_tokens}')::bigint, 0) as cache_write_tokens,
           coalesce((c.call #>> '{usage,unsorted_tokens}')::bigint, 0) as unsorted_tokens
) u
where c.kind = 'model';

comment on view desk.model_calls is 'One row per model call, with tokens and cost. Tokens reserved for a call whose reply never came count in operations and cycles only.';
comment on column desk.model_calls.cycle_id is 'The cycle';
comment on column desk.model_calls.op_id is 'The operation that made the call';
comment on column desk.model_calls.index is 'Number of the call in its operation, as in calls';
comment on column desk.model_calls.pipeline is 'Pipeline';
comment on column desk.model_calls.account is 'Account that the pipeline trades';
comment on column desk.model_calls.as_of is 'Session of the decision';
comment on column desk.model_calls.state is 'State of the workflow';
comment on column desk.model_calls.step is 'Step of the operation';
comment on column desk.model_calls.agent is 'Agent: sentiment, planner, quant, research, trader, risk, memory; null for a repeated attempt';
comment on column desk.model_calls.provider is 'Provider';
comment on column desk.model_calls.model is 'Model';
comment on column desk.model_calls.input_tokens is 'Input tokens';
comment on column desk.model_calls.output_tokens is 'Output tokens';
comment on column desk.model_calls.cache_read_tokens is 'Input tokens read from the provider''s cache';
comment on column desk.model_calls.cache_write_tokens is 'Input tokens written to it';
comment on column desk.model_calls.unsorted_tokens is 'Tokens of unknown kind, counted at their maximum';
comment on column desk.model_calls.tokens is 'All of them';
comment on column desk.model_calls.cost_usd is 'Cost; null where the model has no known price';
comment on column desk.model_calls.reused is 'Whether the answer was on record already and cost nothing';
comment on column desk.model_calls.fault is 'Code of the error; null where there was a reply';
comment on column desk.model_calls.duration_ms is 'Duration in milliseconds';
comment on column desk.model_calls.recorded_at is 'Time it was committed';


create view desk.prompts as
select c.cycle_id, c.op_id, c.index, c.pipeline, c.account, c.as_of, c.step, t.place::int as place,
       t.part, t.sha256, p.text
from public.journal_calls c
cross join lateral (
    select row_number() over (order by turn, piece) as place, part, sha256
    from (
        select -2 as turn, 0::bigint as piece, 'system' as part, c.request ->> 'system_sha256' as sha256
        union all
        select -1, 0, case when c.request ->> 'output' = 'true' then 'schema' else 'tools' end,
               c.request ->> 'schema_sha256'
        union all
        select turn, piece, message ->> 'role', sha256
        from jsonb_array_elements(c.request -> 'messages') with ordinality as m (message, turn),
             jsonb_array_elements_text(message -> 'sha256') with ordinality as s (sha256, piece)
    ) named
    where sha256 is not null
) t
left join public.prompt_texts p
    on p.started_on = date_trunc('month', c.started_on::timestamp)::date and p.sha256 = decode(t.sha256, 'hex')
where c.kind = 'model';

comment on view desk.prompts is 'One row per text that a model was sent, exactly as sent, in order. They hold positions and cash.';
comment on column desk.prompts.cycle_id is 'The cycle';
comment on column desk.prompts.op_id is 'The operation that made the call';
comment on column desk.prompts.index is 'Number of the call in its operation, as in calls';
comment on column desk.prompts.pipeline is 'Pipeline';
comment on column desk.prompts.account is 'Account that the pipeline trades';
comment on column desk.prompts.as_of is 'Session of the decision';
comment on column desk.prompts.step is 'Step of the operation';
comment on column desk.prompts.place is 'Place of the text in its call, from 1';
comment on column desk.prompts.part is 'system, tools or schema, user, tool';
comment on column desk.prompts.sha256 is 'SHA-256 of the text, in hex';
comment on column desk.prompts.text is 'The text; null for the result of a tool (see calls), and where retention dropped it';


create view desk.events as
select e.cycle_id, e.op_id, e.seq, e.type, e.owner, e.pipeline, e.state, e.session_id, e.at, e.data, e.xid, e.id
from public.state_events e;

comment on view desk.events is 'One row per event of the audit. Order them by xid, id: the order in which they are published.';
comment on column desk.events.cycle_id is 'The cycle';
comment on column desk.events.op_id is 'The operation, pipeline, cycle or order that it is about';
comment on column desk.events.seq is 'Number of the event of that op_id, from 0';
comment on column desk.events.type is 'Type: state_entered, llm_response, order_filled';
comment on column desk.events.owner is 'Service that wrote it';
comment on column desk.events.pipeline is 'Pipeline';
comment on column desk.events.state is 'State of the workflow';
comment on column desk.events.session_id is 'Account and exchange session';
comment on column desk.events.at is 'Time of the event';
comment on column desk.events.data is 'Its data, by type';
comment on column desk.events.xid is 'Transaction that wrote it; the first part of the order';
comment on column desk.events.id is 'The second part of the order';


create view desk.decisions as
select o.cycle_id, c.kind, c.requester, o.pipeline, o.account, o.as_of, o.finished_at as decided_at,
       (d.body ->> 'passed')::boolean as passed, jsonb_array_length(d.body -> 'decisions') as orders_allowed,
       array(select jsonb_array_elements_text(d.body -> 'vetoed_tickers')) as vetoed_tickers,
       array(select jsonb_array_elements_text(d.body -> 'adjustments')) as adjustments,
       d.body ->> 'proposal_hash' as proposal_hash, (d.body ->> 'synthetic')::boolean as synthetic,
       d.body as decision, convert_from(x.result, 'UTF8')::jsonb as execution
from public.operations o
join public.cycles c on c.cycle_id = o.cycle_id
left join public.operations x on x.cycle_id = o.cycle_id and x.pipeline = o.pipeline
    and x.step = 'execute' and x.status = 'completed'
cross join lateral (select convert_from(o.result, 'UTF8')::jsonb as body offset 0) d
where o.step in ('validate', 'validate_exits') and o.status = 'completed';

comment on view desk.decisions is 'One row per decision of a pipeline, as the risk rules left it.';
comment on column desk.decisions.cycle_id is 'The cycle';
comment on column desk.decisions.kind is 'Kind of the cycle: decision or exit';
comment on column desk.decisions.requester is 'Identity that requested it; study for cells of a study';
comment on column desk.decisions.pipeline is 'Pipeline';
comment on column desk.decisions.account is 'Account that it trades';
comment on column desk.decisions.as_of is 'Session of the decision';
comment on column desk.decisions.decided_at is 'Time of the decision';
comment on column desk.decisions.passed is 'Whether the rules left anything to order';
comment on column desk.decisions.orders_allowed is 'Number of orders that they left';
comment on column desk.decisions.vetoed_tickers is 'Tickers that the reviewer or a rule vetoed';
comment on column desk.decisions.adjustments is 'Every change by a rule, in words';
comment on column desk.decisions.proposal_hash is 'Hash of the orders: an approval is bound to it';
comment on column desk.decisions.synthetic is 'Whether the prices are synthetic';
comment on column desk.decisions.decision is 'The whole DecisionValidation';
comment on column desk.decisions.execution is 'The whole ExecutionResult; null where nothing was executed';


create view desk.proposals as
select d.cycle_id, d.kind, d.pipeline, d.account, d.as_of, p.ticker, p.action, p.wanted_pct, p.confidence,
       coalesce(r.outcome, 'kept') as outcome, p.allowed_pct, p.quantity, p.price, p.currency,
       r.rule, r.value, r.limit_value, p.reasoning
from desk.decisions d
cross join lateral (
    select coalesce(wanted.ticker, left_over.asset) as ticker, coalesce(wanted.action, left_over.action) as action,
           wanted.allocation_pct as wanted_pct, coalesce(wanted.confidence, left_over.confidence) as confidence,
           coalesce(wanted.reasoning, left_over.reasoning) as reasoning, left_over.allocation_pct as allowed_pct,
           trim_scale(left_over.quantity) as quantity, trim_scale((left_over.price ->> 'amount')::numeric) as price,
           left_over.price ->> 'currency' as currency
    from jsonb_to_recordset(d.decision -> 'proposals')
        as wanted (ticker text, action text, allocation_pct numeric, confidence numeric, reasoning text)
    full join jsonb_to_recordset(d.decision -> 'decisions')
        as left_over (asset text, action text, allocation_pct numeric, confidence numeric, reasoning text,
                      quantity numeric, price jsonb)
        on left_over.asset = wanted.ticker and left_over.action = wanted.action
) p
left join lateral (
    select it.outcome, it.rule, it.value, it."limit" as limit_value
    from rows from (jsonb_to_recordset(d.decision -> 'checks')
        as (rule text, ticker text, outcome text, value text, "limit" text))
        with ordinality as it (rule, ticker, outcome, value, "limit", place)
    where it.ticker = p.ticker and it.outcome <> 'kept'
    order by it.outcome = 'vetoed' desc, it.place
    limit 1
) r on true;

comment on view desk.proposals is 'One row per proposed trade: what was wanted, and what the rules left of it.';
comment on column desk.proposals.cycle_id is 'The cycle';
comment on column desk.proposals.kind is 'Kind of the cycle: decision or exit';
comment on column desk.proposals.pipeline is 'Pipeline';
comment on column desk.proposals.account is 'Account that it trades';
comment on column desk.proposals.as_of is 'Session of the decision';
comment on column desk.proposals.ticker is 'Ticker';
comment on column desk.proposals.action is 'buy or sell';
comment on column desk.proposals.wanted_pct is 'Proposed share: of the budget for a buy, of the position for a sale';
comment on column desk.proposals.confidence is 'Stated confidence, 0 to 1';
comment on column desk.proposals.outcome is 'kept, cut or vetoed';
comment on column desk.proposals.allowed_pct is 'Share that the rules left; null where they left nothing';
comment on column desk.proposals.quantity is 'Shares that they left';
comment on column desk.proposals.price is 'Price it was sized at';
comment on column desk.proposals.currency is 'Currency of the price';
comment on column desk.proposals.rule is 'Rule that vetoed it, or the first that cut it';
comment on column desk.proposals.value is 'What that rule saw';
comment on column desk.proposals.limit_value is 'Its limit';
comment on column desk.proposals.reasoning is 'Reasons for the proposal, in words';


create view desk.checks as
select d.cycle_id, d.kind, d.pipeline, d.account, d.as_of, it.place::int as place, it.rule, it.ticker, it.outcome,
       it.passed, it.value, it."limit" as limit_value, it.reason
from desk.decisions d
cross join lateral rows from (jsonb_to_recordset(d.decision -> 'checks')
    as (rule text, ticker text, outcome text, passed boolean, value text, "limit" text, reason text))
    with ordinality as it (rule, ticker, outcome, passed, value, "limit", reason, place);

comment on view desk.checks is 'One row per risk rule and ticker of a decision.';
comment on column desk.checks.cycle_id is 'The cycle';
comment on column desk.checks.kind is 'Kind of the cycle: decision or exit';
comment on column desk.checks.pipeline is 'Pipeline';
comment on column desk.checks.account is 'Account that it trades';
comment on column desk.checks.as_of is 'Session of the decision';
comment on column desk.checks.place is 'Place among the checks of the decision, from 1';
comment on column desk.checks.rule is 'Rule';
comment on column desk.checks.ticker is 'Ticker; null for the whole proposal';
comment on column desk.checks.outcome is 'kept, cut or vetoed';
comment on column desk.checks.passed is 'Whether the rule was met';
comment on column desk.checks.value is 'What it saw';
comment on column desk.checks.limit_value is 'Its limit';
comment on column desk.checks.reason is 'Reason, in words';


create view desk.not_bought as
select o.cycle_id, o.pipeline, o.account, o.as_of, it.ticker, it.cause, it.name as rule, it.value,
       it."limit" as limit_value, trim_scale((it.buys_above ->> 'amount')::numeric) as buys_above,
       it.buys_above ->> 'currency' as currency, it.why
from public.operations o
cross join lateral jsonb_to_recordset(convert_from(o.result, 'UTF8')::jsonb -> 'passed')
    as it (ticker text, cause text, name text, value text, "limit" text, buys_above jsonb, why text)
where o.step = 'picks' and o.status = 'completed';

comment on view desk.not_bought is 'One row per reason not to propose a buy of a ticker, as it stood when the trader picked.';
comment on column desk.not_bought.cycle_id is 'The cycle';
comment on column desk.not_bought.pipeline is 'Pipeline';
comment on column desk.not_bought.account is 'Account that it trades';
comment on column desk.not_bought.as_of is 'Session of the decision';
comment on column desk.not_bought.ticker is 'Ticker';
comment on column desk.not_bought.cause is 'rule: a risk rule leaves no room; threshold: a stated rule of the trader was not met; own_words: the reason of the model';
comment on column desk.not_bought.rule is 'Name of the risk rule or threshold; empty for own_words';
comment on column desk.not_bought.value is 'What it saw';
comment on column desk.not_bought.limit_value is 'Its limit';
comment on column desk.not_bought.buys_above is 'Price above which it would have been proposed; null where no price would do, and for a rule';
comment on column desk.not_bought.currency is 'Currency of that price';
comment on column desk.not_bought.why is 'Reason, in words';


create view desk.approvals as
select o.cycle_id, o.pipeline, o.account, o.as_of, o.status, o.created_at as asked_at,
       o.deadline_at as expires_at, a.body ->> 'verdict' as verdict, a.body ->> 'approver' as approver,
       a.body ->> 'reason' as reason, (a.body ->> 'decided_at')::timestamptz as decided_at
from public.operations o
cross join lateral (select convert_from(o.result, 'UTF8')::jsonb as body offset 0) a
where o.step = 'approval';

comment on view desk.approvals is 'One row per proposal that a person was asked about.';
comment on column desk.approvals.cycle_id is 'The cycle';
comment on column desk.approvals.pipeline is 'Pipeline';
comment on column desk.approvals.account is 'Account that it trades';
comment on column desk.approvals.as_of is 'Session of the decision';
comment on column desk.approvals.status is 'pending while it waits; completed once it is answered';
comment on column desk.approvals.asked_at is 'Time of the question';
comment on column desk.approvals.expires_at is 'Time at which it expires';
comment on column desk.approvals.verdict is 'approve, reject or edit; null without an answer';
comment on column desk.approvals.approver is 'Identity that answered';
comment on column desk.approvals.reason is 'Its reason';
comment on column desk.approvals.decided_at is 'Time of the answer';


create view desk.accounts as
select a.account, a.currency, a.main, a.clock, a.opened_on, a.opened_at, a.starting_cash,
       coalesce(b.amount, 0) as cash,
       coalesce((select l.limits from public.limit_changes l
                 where l.account = a.account order by l.number desc limit 1), a.limits) as limits,
       exists (select from public.halts h where h.account is null or h.account = a.account) as halted
from public.accounts a
left join public.balances b on b.account = a.account and b.book = 'cash';

comment on view desk.accounts is 'One row per account, as it stands now.';
comment on column desk.accounts.account is 'Name of the account; study-... for those of studies';
comment on column desk.accounts.currency is 'Currency of all its amounts';
comment on column desk.accounts.main is 'Whether it is the main account';
comment on column desk.accounts.clock is 'Newest session that it has seen';
comment on column desk.accounts.opened_on is 'Session of its opening';
comment on column desk.accounts.opened_at is 'Time of its opening';
comment on column desk.accounts.starting_cash is 'Cash at its opening';
comment on column desk.accounts.cash is 'Cash now';
comment on column desk.accounts.limits is 'Risk limits in force';
comment on column desk.accounts.halted is 'Whether its buys are halted';


create view desk.orders as
select o.order_id, o.cycle_id, o.op_id, o.pipeline, o.account, o.as_of, o.placed_at, o.ticker, o.sector, o.side,
       o.type, trim_scale(o.quantity) as quantity, o.status, nullif(o.reason, '') as reason,
       trim_scale(o.stop_price) as stop_price, o.exit as is_exit, o.exit_rules, nullif(o.thesis, '') as thesis,
       f.session as filled_on, trim_scale(f.price) as price, trim_scale(f.quantity) as filled_quantity, f.fee,
       booked.cash, booked.realised, a.currency
from public.orders o
join public.accounts a on a.account = o.account
left join public.fills f on f.order_id = o.order_id
left join lateral (
    select sum(p.amount) filter (where p.book = 'cash') as cash,
           -sum(p.amount) filter (where p.book = 'realised') as realised
    from public.postings p where p.entry_id = f.entry_id
) booked on true;

comment on view desk.orders is 'One row per order, with its fill and what that came to.';
comment on column desk.orders.order_id is 'Id of the order';
comment on column desk.orders.cycle_id is 'Cycle that placed it';
comment on column desk.orders.op_id is 'Operation that placed it';
comment on column desk.orders.pipeline is 'Pipeline';
comment on column desk.orders.account is 'Account';
comment on column desk.orders.as_of is 'Session of the decision';
comment on column desk.orders.placed_at is 'Time it was placed';
comment on column desk.orders.ticker is 'Ticker';
comment on column desk.orders.sector is 'Sector of the ticker';
comment on column desk.orders.side is 'buy or sell';
comment on column desk.orders.type is 'market or stop';
comment on column desk.orders.quantity is 'Shares ordered; a stop follows splits and sales of its position';
comment on column desk.orders.status is 'working, waiting (a stop), filled, rejected or cancelled';
comment on column desk.orders.reason is 'Why it was cut, rejected or cancelled, or still works';
comment on column desk.orders.stop_price is 'Price that triggers it, in the currency that the ticker trades in; of a market order, the price of the stop after its fill';
comment on column desk.orders.is_exit is 'Whether an exit check proposed it';
comment on column desk.orders.exit_rules is 'Exit rules that fired; null where none did';
comment on column desk.orders.thesis is 'Why it was bought';
comment on column desk.orders.filled_on is 'Session of the fill; null before';
comment on column desk.orders.price is 'Price of the fill, slippage included';
comment on column desk.orders.filled_quantity is 'Shares filled';
comment on column desk.orders.fee is 'Fee of the fill';
comment on column desk.orders.cash is 'Cash that the fill moved, fee included: negative for a buy';
comment on column desk.orders.realised is 'Of a sale: proceeds less the average cost of the shares sold, before its fee';
comment on column desk.orders.currency is 'Currency of price, fee, cash and realised: the account''s';


create view desk.positions as
select b.account, b.ticker, trim_scale(b.quantity) as quantity, b.amount as cost, b.opened_on,
       s.session as valued_on, trim_scale((s.close ->> 'amount')::numeric) as price,
       trim_scale(b.quantity * (s.close ->> 'amount')::numeric) as value, a.currency
from public.balances b
join public.accounts a on a.account = b.account
left join lateral (
    select n.session, it as close
    from (select session, closes from public.snapshots
          where account = b.account order by session desc limit 1) n,
         jsonb_array_elements(n.closes) it
    where it ->> 'ticker' = b.ticker
) s on true
where b.book = 'position' and b.quantity > 0;

comment on view desk.positions is 'One row per position that is held now.';
comment on column desk.positions.account is 'Account';
comment on column desk.positions.ticker is 'Ticker';
comment on column desk.positions.quantity is 'Shares held';
comment on column desk.positions.cost is 'What they cost, fees left out';
comment on column desk.positions.opened_on is 'Session since which something of it is held';
comment on column desk.positions.valued_on is 'Session of the price; null before its first close';
comment on column desk.positions.price is 'Price of one share at that close';
comment on column desk.positions.value is 'Shares times price';
comment on column desk.positions.currency is 'Currency of all amounts: the account''s';


create view desk.ledger as
select e.entry_id, p.line, e.account, e.session, e.kind, e.key, coalesce(p.ticker, e.ticker) as ticker, p.book,
       p.amount, trim_scale(p.quantity) as quantity, coalesce(p.currency, a.currency) as traded_currency,
       coalesce(p.foreign_amount, p.amount) as traded_amount, a.currency, e.memo, e.at
from public.entries e
join public.postings p on p.entry_id = e.entry_id
join public.accounts a on a.account = e.account;

comment on view desk.ledger is 'One row per line of the double entry. The lines of an entry sum to zero; debit is positive, credit negative.';
comment on column desk.ledger.entry_id is 'Number of the entry';
comment on column desk.ledger.line is 'Number of the line in its entry';
comment on column desk.ledger.account is 'Account';
comment on column desk.ledger.session is 'Session at which it took effect';
comment on column desk.ledger.kind is 'open, fill, split, dividend, deposit or withdrawal';
comment on column desk.ledger.key is 'What happened: nothing is posted twice under one key';
comment on column desk.ledger.ticker is 'Ticker; null where cash alone moved';
comment on column desk.ledger.book is 'cash, position, fees, realised, dividends, capital or exchange';
comment on column desk.ledger.amount is 'Amount';
comment on column desk.ledger.quantity is 'Shares; 0 outside the book position';
comment on column desk.ledger.traded_currency is 'Currency that it was traded in';
comment on column desk.ledger.traded_amount is 'Amount in that currency';
comment on column desk.ledger.currency is 'Currency of the amount: the account''s';
comment on column desk.ledger.memo is 'What happened, in words';
comment on column desk.ledger.at is 'Time of posting';


create view desk.equity as
select s.account, s.session, s.equity, s.cash, s.positions, s.paid_in, s.realised, s.unrealised, s.dividends, s.fees,
       s.exposure_gross, s.exposure_net, s.unpriced, a.currency
from public.snapshots s
join public.accounts a on a.account = s.account;

comment on view desk.equity is 'One row per account and session, at that session''s close.';
comment on column desk.equity.account is 'Account';
comment on column desk.equity.session is 'Session';
comment on column desk.equity.equity is 'Cash and positions; null where unpriced names a ticker';
comment on column desk.equity.cash is 'Cash';
comment on column desk.equity.positions is 'Value of all positions';
comment on column desk.equity.paid_in is 'What the owner has paid in, less what was taken out';
comment on column desk.equity.realised is 'Gains of sales since the opening, before fees';
comment on column desk.equity.unrealised is 'Gain of what is held';
comment on column desk.equity.dividends is 'Dividends since the opening';
comment on column desk.equity.fees is 'Fees since the opening';
comment on column desk.equity.exposure_gross is 'Value of all positions, each as a positive number';
comment on column desk.equity.exposure_net is 'Long less short positions';
comment on column desk.equity.unpriced is 'Tickers that nobody can value';
comment on column desk.equity.currency is 'Currency of all amounts';


grant usage on schema desk to deskbus_console;
grant select on all tables in schema desk to deskbus_console;
alter default privileges in schema desk grant select on tables to deskbus_console;
