-- What the orchestrator may know of accounts: up to which session each has seen. A request for an
-- earlier one is refused before it is a cycle.

create view account_clocks as select account, clock from accounts;

grant select on account_clocks to deskbus_orchestrator;
