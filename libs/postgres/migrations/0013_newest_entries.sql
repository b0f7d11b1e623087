-- The newest entry of an account's ledger, however long it is.
create index entries_newest on entries (account, entry_id);
