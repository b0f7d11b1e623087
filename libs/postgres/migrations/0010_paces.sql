-- How fast each model endpoint is asked, by all replicas of all services: when the bucket of each of
-- its limits is full again, and until when it asked to be left alone (Retry-After).
create table paces (
    provider       text primary key,
    calls_full_at  timestamptz not null,
    tokens_full_at timestamptz not null,
    closed_until   timestamptz not null
);
grant select, insert, update on paces to deskbus_orchestrator;
