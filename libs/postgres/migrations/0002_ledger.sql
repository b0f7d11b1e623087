-- The ledger: accounts, orders, fills and a double entry that the database itself keeps balanced.
-- Run as the owner; written by execution alone. Money is numeric in the account's currency; what is
-- posted is whole cents.

create table accounts (
    account       text primary key,
    currency      text not null check (currency ~ '^[A-Z]{3}$'),
    clock         date not null,               -- the newest as_of seen; it never goes back
    starting_cash numeric(20, 2) not null check (starting_cash > 0),
    limits        jsonb not null,
    main          boolean not null default false,
    opened_on     date not null,               -- the session of the opening entry
    opened_at     timestamptz not null default clock_timestamp()
);
create unique index accounts_one_main on accounts (main) where main;

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
    status     text not null check (status in ('working', 'filled', 'rejected', 'cancelled')),
    reason     text not null default '',
    as_of      date not null,                  -- the session it was decided at
    placed_at  timestamptz not null default clock_timestamp()
);
create index orders_working on orders (account) where status = 'working';
create index orders_of_account on orders (account, as_of);

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
    book     text not null
        check (book in ('cash', 'position', 'fees', 'realised', 'dividends', 'capital')),
    ticker   text,
    amount   numeric(20, 2) not null,
    quantity numeric(20, 6) not null default 0,
    primary key (entry_id, line),
    check ((book = 'position') = (ticker is not null)),
    check (book = 'position' or quantity = 0)
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
    primary key (order_id, number)
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
    primary key (account, book, ticker),
    constraint cash_not_negative check (book <> 'cash' or amount >= 0),
    constraint no_short_position check (quantity >= 0)
) with (fillfactor = 70);

create function post_to_balances() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $$
begin
    insert into balances (account, book, ticker)
        values (new.account, new.book, coalesce(new.ticker, '')) on conflict do nothing;
    update balances set amount = amount + new.amount, quantity = quantity + new.quantity
        where account = new.account and book = new.book and ticker = coalesce(new.ticker, '');
    return null;
end $$;
create trigger postings_to_balances after insert on postings
    for each row execute function post_to_balances();

create function check_entry() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    total numeric;
    lines int;
    strangers int;
begin
    select sum(p.amount), count(*), count(*) filter (where p.account <> e.account)
        into total, lines, strangers
        from entries e left join postings p using (entry_id)
        where e.entry_id = new.entry_id and p.entry_id is not null;
    if lines = 0 or total <> 0 or strangers > 0 then
        raise exception 'entry % is not balanced: % lines sum to %, % of another account',
            new.entry_id, lines, total, strangers using errcode = 'check_violation';
    end if;
    return null;
end $$;
create constraint trigger entries_balanced after insert on entries
    deferrable initially deferred for each row execute function check_entry();
create constraint trigger postings_balanced after insert on postings
    deferrable initially deferred for each row execute function check_entry();

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

create function check_order_change() returns trigger language plpgsql as $$
begin
    if old.status <> 'working' then
        raise exception 'order % is % and stays so', old.order_id, old.status
            using errcode = 'check_violation';
    end if;
    return new;
end $$;
create trigger orders_end_once before update on orders
    for each row execute function check_order_change();

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

-- The newest books of every account, as people look at them.
create view positions as
select account, ticker, quantity, amount as cost from balances
where book = 'position' and quantity > 0;

revoke all on accounts, orders, entries, postings, fills, executions, balances, positions
    from public;
revoke all on function post_to_balances(), check_entry() from public;
grant select, insert on accounts, orders, entries, postings, fills, executions
    to deskbus_execution;
grant select on balances, positions to deskbus_execution;
grant update (clock) on accounts to deskbus_execution;
grant update (quantity, status, reason) on orders to deskbus_execution;
grant select on accounts, orders, entries, postings, fills, executions, balances, positions
    to deskbus_console;
