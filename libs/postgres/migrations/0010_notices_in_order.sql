-- What is due next must be found by `notifications_next` alone. Beside an index over the numbers of
-- all notices the planner takes that one, in the belief that some that are due stand among any few,
-- and reads all that were ever sent. The list of notices is short enough to be sorted.
drop index notifications_by_number;
