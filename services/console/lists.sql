-- Lists that people filter, and the search over everything, as the role deskbus_console.

-- name: cycles_beginning
-- Ids that begin alike lie between two ids, so a shortened id is a range of the primary key.
select cycle_id, kind, as_of, status from cycles
where cycle_id between $1 and $2 order by cycle_id limit $3

-- name: operations_beginning
select op_id, state, step, status from operations
where op_id between $1 and $2 order by op_id limit $3

-- name: tickers_like
-- One row an account, book and ticker: as many as were ever held.
select distinct ticker from balances
where book = 'position' and position(upper($1) in ticker) > 0
order by ticker limit $2
