-- What each position was valued at when a session closed: a share that has no price any more keeps
-- its last known one. Each is {ticker, price, currency, amount, rate, rate_on, priced_on}; amounts
-- are text, exact to the last digit. `priced_on` is null where the price is the session's own close.
alter table snapshots add column closes jsonb not null default '[]';
