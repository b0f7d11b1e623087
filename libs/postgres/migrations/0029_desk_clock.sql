-- The desk's clock: limits and leases stand still while nothing can be committed. Orchestrators set
-- it on all the time; where none can, it stands at `stands_at` until one can again, which gives all
-- that runs the time that it stood.
create table desk_clock (
    one       boolean primary key default true check (one),
    beat_at   timestamptz not null,
    stands_at timestamptz not null
);
insert into desk_clock (beat_at, stands_at) values (clock_timestamp(), 'infinity');

-- When it stood.
create table outages (
    since_at timestamptz primary key,
    until_at timestamptz not null
);

create function desk_now() returns timestamptz language sql volatile as
$$ select least(clock_timestamp(), stands_at) from desk_clock $$;

revoke all on desk_clock, outages from public;
revoke all on function desk_now() from public;
grant select, update on desk_clock to deskbus_orchestrator;
grant select, insert on outages to deskbus_orchestrator;
grant select on desk_clock, outages to deskbus_console;
grant execute on function desk_now() to deskbus_orchestrator;
