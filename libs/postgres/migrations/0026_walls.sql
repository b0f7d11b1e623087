-- What every role may call is what it needs. And the lock of the kill switch is one that only whoever
-- places orders can take: anybody may take an advisory lock, and hold all buys up with it.

create table halt_lock (nothing boolean);
revoke all on halt_lock from public, deskbus_console;
grant update on halt_lock to deskbus_execution;

create or replace function hold_halts() returns void language sql as $$
    lock table halt_lock in row share mode;
$$;
create or replace function change_halts() returns void language sql as $$
    lock table halt_lock in exclusive mode;
$$;

revoke execute on all functions in schema public from public;
grant execute on function hold_halts(), change_halts() to deskbus_execution;
grant execute on function limits_of(text) to deskbus_execution, deskbus_console;
