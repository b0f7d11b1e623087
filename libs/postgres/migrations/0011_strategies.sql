-- Large bodies, such as trained models, in parts, under the SHA-256 of the whole. Whoever reads one
-- compares the hash, so a part need not be trusted here; nobody changes or removes one.
create table bodies (
    sha256     bytea not null check (octet_length(sha256) = 32),
    part       int not null check (part >= 0),
    parts      int not null check (parts > part),
    bytes      bytea not null check (octet_length(bytes) <= 256000),
    kept_at    timestamptz not null default clock_timestamp(),
    primary key (sha256, part)
);
revoke all on bodies from public;
grant select, insert on bodies to deskbus_orchestrator;
grant select on bodies to deskbus_console;

-- One strategy cycle at a time. Of two orchestrators that accept one each, the second is refused
-- here, reads again, and says no.
create unique index cycles_one_strategy on cycles (kind) where kind = 'strategy' and status = 'running';
