-- What is traded in another currency than the account's, and what an account was worth day by day.

-- Amounts stay in the account's currency. `currency` (null: the account's own) and `foreign_amount`
-- say what a line was before the exchange.
alter table postings add column currency text check (currency ~ '^[A-Z]{3}$');
alter table postings add column foreign_amount numeric(20, 2);
alter table postings add constraint postings_foreign
    check ((currency is null) = (foreign_amount is null));
-- No account keeps foreign cash: every trade is exchanged at once.
alter table postings add constraint postings_cash_is_own
    check (currency is null or book not in ('cash', 'capital'));
alter table postings drop constraint postings_book_check;
alter table postings add constraint postings_book_check check (
    book in ('cash', 'position', 'fees', 'realised', 'dividends', 'capital', 'exchange'));

-- Of a position: the currency that it trades in, and its cost there.
alter table balances add column currency text;
alter table balances add column foreign_amount numeric(20, 2) not null default 0;

create or replace function post_to_balances() returns trigger
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
            then foreign_amount + coalesce(new.foreign_amount, 0) else 0 end
        where account = new.account and book = new.book and ticker = coalesce(new.ticker, '');
    return null;
end $$;

-- Balanced in every currency, each both as it was traded and in the account's currency.
create or replace function check_entry() returns trigger
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

-- An order's rate is the one it was sized at, a fill's the one it was exchanged at.
alter table orders add column currency text;
alter table orders add column foreign_price numeric(20, 6);
alter table orders add column rate numeric(20, 10) check (rate > 0);
alter table orders add column rate_on date;
alter table orders add constraint orders_foreign
    check (num_nulls(currency, foreign_price, rate, rate_on) in (0, 4));
alter table fills add column currency text;
alter table fills add column foreign_price numeric(20, 6);
alter table fills add column rate numeric(20, 10) check (rate > 0);
alter table fills add column rate_on date;
alter table fills add column foreign_fee numeric(20, 2);
alter table fills add constraint fills_foreign
    check (num_nulls(currency, foreign_price, rate, rate_on, foreign_fee) in (0, 5));

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
    primary key (account, session),
    check (num_nulls(positions, equity, unrealised, exposure_gross, exposure_net)
           = case when unpriced = '{}' then 0 else 5 end)
);
create trigger snapshots_append_only before update or delete or truncate on snapshots
    for each statement execute function refuse_change();

revoke all on snapshots from public;
grant select, insert on snapshots to deskbus_execution;
grant select on snapshots to deskbus_console;
