-- name: clocks
-- Up to which session each of these accounts has seen; one that nobody has opened is left out.
select account, clock from account_clocks where account = any($1::text[])

-- name: bound
-- Those of these accounts that are bound to a broker.
select account from account_clocks where account = any($1::text[]) and bound order by account

-- name: names
select account from account_clocks order by account limit $1
