-- What execution may know of operations: enough to hold a command against the one on record, and to
-- judge what it asks for. Its own operations alone, and no body of any.
create view commands_on_record as
select o.op_id, o.account, o.finished_at is not null as ended,
       encode(sha256(o.command), 'hex') as command_sha256,
       -- What the request lets a pipeline spend; null: no more than the account's own limits.
       nullif(convert_from(c.request, 'utf8')::jsonb #> '{budgets,money}', 'null') as budget,
       -- What it asks for beyond the account's limits: they only tighten.
       convert_from(c.request, 'utf8')::jsonb -> 'constraints' as constraints,
       asked.op_id is not null as asked,       -- whether a person was asked before it
       asked.result as approval                -- what was said, once it was
from operations o
join cycles c using (cycle_id)
left join operations asked
    on asked.cycle_id = o.cycle_id and asked.pipeline = o.pipeline and asked.step = 'approval'
where o.service = 'execution';

revoke all on commands_on_record from public;
grant select on commands_on_record to deskbus_execution, deskbus_console;
