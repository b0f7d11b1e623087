-- A buy has a plan, and its stop is placed once it is filled.

alter table orders add column plan jsonb;
alter table orders add column thesis text not null default '';
alter table orders drop constraint orders_exit;
alter table orders add constraint orders_stop_of
    check (stop_price is null or exit or side = 'buy' or type = 'stop');
alter table orders add constraint orders_plan check (plan is null or side = 'buy');
