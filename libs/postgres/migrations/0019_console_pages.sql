-- Lists of cycles by status, newest first: what failed of late, what runs.
create index cycles_by_status on cycles (status, accepted_at desc);
