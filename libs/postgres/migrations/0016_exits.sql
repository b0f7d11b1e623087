-- Exits and their stop orders.

-- A stop order is `waiting` where a market order is `working`: execution from before this does not see
-- it, instead of filling it at the next open.
alter table orders drop constraint orders_status_check;
alter table orders add constraint orders_status_check
    check (status in ('working', 'waiting', 'filled', 'rejected', 'cancelled'));
create or replace function check_order_change() returns trigger language plpgsql as $$
begin
    if old.status not in ('working', 'waiting') then
        raise exception 'order % is % and stays so', old.order_id, old.status
            using errcode = 'check_violation';
    end if;
    return new;
end $$;

-- What triggers a stop order, in the currency that the ticker trades in; of a sale, the price of the
-- stop order that is placed on the rest once it is filled.
alter table orders add column stop_price numeric(20, 6) check (stop_price > 0);
-- Whether an exit check proposed it: at most one an account, ticker and session.
alter table orders add column exit boolean not null default false;
alter table orders add constraint orders_stop
    check (type <> 'stop' or (side = 'sell' and stop_price is not null));
alter table orders add constraint orders_waits
    check (case type when 'stop' then status <> 'working' else status <> 'waiting' end);
alter table orders add constraint orders_exit check (exit or (stop_price is null and type <> 'stop'));
alter table orders add constraint orders_exit_sells check (side = 'sell' or not exit);

create unique index orders_one_exit on orders (account, ticker, as_of)
    where exit and type = 'market' and status <> 'rejected';
create unique index orders_one_stop on orders (account, ticker)
    where type = 'stop' and status = 'waiting';
create index orders_stops on orders (account) where type = 'stop';

grant update (stop_price) on orders to deskbus_execution;
