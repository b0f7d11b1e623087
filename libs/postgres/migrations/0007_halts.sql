-- The kill switch, and the limits as they change.

-- Every change is a row for ever; the newest one of an account (null: of all
-- accounts) says how it stands. Written by execution alone.

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
create trigger halt_changes_append_only before update or delete or truncate on halt_changes
    for each statement execute function refuse_change();

create view halts as
select account, reason, by_whom, at
from (select distinct on (account) * from halt_changes order by account, number desc) newest
where halted;

-- Whoever places or fills a buy holds this lock in shared mode until it commits; a halt takes it
-- alone. So a halt waits for the buys under way, and none begins behind its back.
create function hold_halts() returns void language sql as $$
    select pg_advisory_xact_lock_shared(x'68616c74'::int);  -- "halt"
$$;
create function change_halts() returns void language sql as $$
    select pg_advisory_xact_lock(x'68616c74'::int);
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

revoke all on halt_changes, halts from public;
revoke all on function refuse_halted_buy() from public;
grant select, insert on halt_changes to deskbus_execution;
grant select on halts to deskbus_execution, deskbus_console;
grant select on halt_changes to deskbus_console;

-- The limits in force come from the settings. What they were is kept: accounts.limits at the
-- opening, then one row for every change that execution has met.
create table limit_changes (
    number  bigint generated always as identity primary key,
    account text not null references accounts,
    limits  jsonb not null,
    at      timestamptz not null default clock_timestamp()
);
create index limit_changes_newest on limit_changes (account, number desc);
create trigger limit_changes_append_only before update or delete or truncate on limit_changes
    for each statement execute function refuse_change();

create function limits_of(wanted text) returns jsonb language sql stable as $$
    select coalesce(
        (select l.limits from limit_changes l where l.account = wanted order by number desc limit 1),
        (select a.limits from accounts a where a.account = wanted)
    );
$$;

revoke all on limit_changes from public;
grant select, insert on limit_changes to deskbus_execution;
grant select on limit_changes to deskbus_console;
