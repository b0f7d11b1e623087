-- A cycle's clock stands while a person is asked: since when it does, and how long it has stood.
alter table cycles add column waiting_since timestamptz;
alter table cycles add column waited_s double precision not null default 0;

-- What waits for a person, the first to expire first.
create index operations_waiting on operations (deadline_at)
    where step = 'approval' and status = 'pending';
