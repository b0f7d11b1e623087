-- Commands of a study's cells that rest while a live cycle is at work: since when. Such a row is
-- pending, is not swept, and its time limit stands; it is sent when no live cycle is at work.
alter table operations add column rests_since timestamptz;
create index operations_resting on operations (rests_since)
    where rests_since is not null and status = 'pending';

-- How many live cycles are at work: those that are neither a study's cells nor wait for a person. A
-- strategy cycle takes hours, and has a process of its own.
create function live_at_work() returns bigint language sql stable as $$
    select count(*) from cycles
    where status = 'running' and requester <> 'study' and waiting_since is null and kind <> 'strategy'
$$;
revoke execute on function live_at_work() from public;
grant execute on function live_at_work() to deskbus_orchestrator, deskbus_console;
