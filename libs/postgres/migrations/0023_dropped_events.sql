-- How far retention has dropped events: whoever resumes from before it may have missed some.
alter table relay_cursor
    add column dropped_xid xid8 not null default '0',
    add column dropped_id bigint not null default 0;
