-- Of a position: the session since which something of it was held without a break. Kept by the
-- trigger that keeps the balances; it stays when the position closes, until the next one opens.
alter table balances add column opened_on date;

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
            then foreign_amount + coalesce(new.foreign_amount, 0) else 0 end,
        opened_on = case when of_position and quantity = 0 and new.quantity > 0
            then (select session from entries where entry_id = new.entry_id) else opened_on end
        where account = new.account and book = new.book and ticker = coalesce(new.ticker, '');
    return null;
end $$;

with held as (
    select p.account, p.ticker, p.quantity, e.session,
           row_number() over lines as number, sum(p.quantity) over lines as after
    from postings p join entries e using (entry_id)
    where p.book = 'position' and p.quantity <> 0
    window lines as (partition by p.account, p.ticker order by p.entry_id, p.line)
), opened as (
    select distinct on (account, ticker) account, ticker, session from held
    where quantity > 0 and after - quantity = 0
    order by account, ticker, number desc
)
update balances b set opened_on = o.session from opened o
where b.account = o.account and b.book = 'position' and b.ticker = o.ticker;
