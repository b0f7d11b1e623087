-- Exits are decisions too, and stand in the same list.
drop index operations_decided;
create index operations_decided on operations (finished_at desc)
    where step in ('validate', 'validate_exits') and status = 'completed';
