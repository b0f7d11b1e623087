-- What the console's pages list, newest first: cycles of a status or kind; what failed; decisions.
create index cycles_by_status on cycles (status, accepted_at desc);
create index cycles_by_kind on cycles (kind, accepted_at desc);
create index operations_failed on operations (created_at desc) where status in ('failed', 'cancelled');
create index operations_decided on operations (finished_at desc)
    where step = 'validate' and status = 'completed';
