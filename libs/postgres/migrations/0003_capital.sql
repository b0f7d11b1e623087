-- What an owner brings into an account and takes out of it after its opening.

-- An account that opens with holdings may have no cash.
alter table accounts drop constraint accounts_starting_cash_check,
    add constraint accounts_starting_cash_check check (starting_cash >= 0);

alter table entries drop constraint entries_kind_check,
    add constraint entries_kind_check
        check (kind in ('open', 'fill', 'split', 'dividend', 'deposit', 'withdrawal'));

-- What the owner had paid in by then, less what was taken out: cash, and holdings at their cost.
-- Null where a program from before this wrote the row: then it is the account's starting cash.
alter table snapshots add column paid_in numeric(20, 2);
