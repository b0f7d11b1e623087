-- What an exit's sale acts on: the rules that fired, the calendar month that their signal is of, and
-- how many shares of how many were to be sold. So a signal of a month acts once, whoever checks how
-- often. Null of other orders, and of exits from before this column.
alter table orders
    add column exit_rules text[],
    add column exit_month text check (exit_month ~ '^\d{4}-(0[1-9]|1[0-2])$'),
    add column exit_held  numeric(20, 6) check (exit_held > 0),
    add column exit_asked numeric(20, 6) check (exit_asked >= 0),
    add constraint orders_acts
        check (num_nulls(exit_rules, exit_month, exit_held, exit_asked) in (0, 4)),
    add constraint orders_acts_of_exits
        check (exit_rules is null or (exit and type = 'market' and exit_rules <> '{}'));
create index orders_acted on orders (account, ticker, as_of) where exit_rules is not null;
