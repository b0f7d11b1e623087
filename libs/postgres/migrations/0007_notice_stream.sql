-- Which stream of notices the relay fills, and up to which number NATS said that it has it: one that
-- is another, or ends before that, has lost some. Null before the first look.
alter table relay_cursor
    add column notices_made_at timestamptz,
    add column notices_number bigint not null default 0;
