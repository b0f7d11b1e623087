-- The stop orders that were open at a session's close: an order's row says only how it is now.
-- Each is {ticker, quantity, stop_price, currency, as_of}; amounts are text, exact to the last digit.
alter table snapshots add column stops jsonb not null default '[]';
