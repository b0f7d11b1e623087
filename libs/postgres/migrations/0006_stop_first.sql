-- Whether programs that do not know a migration must not be started on what it made. Those that write
-- or read the tables look at it when they start.
alter table schema_migrations add column stop_first boolean not null default false;
grant select on schema_migrations to deskbus_orchestrator, deskbus_execution, deskbus_console;
