-- An account's decisions, the newest first, however many the others have made since.
create index operations_decided_for on operations (account, finished_at desc)
    where step in ('validate', 'validate_exits') and status = 'completed';
