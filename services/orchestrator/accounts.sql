-- name: clocks
-- Up to which session each of these accounts has seen; one that nobody has opened is left out.
select account, clock from account_clocks where account = any($1::text[])

-- name: names
select account from account_clocks order by account limit $1
