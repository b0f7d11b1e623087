-- The UTC day whose budget holds an operation's reservation: it is given back to that day only.
alter table operations add column reserved_on date;
