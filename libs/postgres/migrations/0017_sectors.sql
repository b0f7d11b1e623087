-- The sector of holdings that an owner brought in, as the market source had it then: they have no order
-- that says it. Null of all other entries, and where the source had none.
alter table entries add column sector text;
