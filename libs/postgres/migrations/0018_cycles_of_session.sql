-- A daily report asks for the cycles of one session.
create index cycles_of_session on cycles (as_of, accepted_at);
