-- Views for people who query the record with SQL (docs/sql.md). The tables may change with any release;
-- views and their columns are only added. Bodies are jsonb and hashes hex. deskbus_console, which may
-- read all tables, may read them, and no other role. No view calls a function of the desk: its reader
-- would need the right to call it too.

create schema desk;
comment on schema desk is 'The record for readers with SQL: see docs/sql.md.';


create view desk.cycles as
select c.cycle_id, c.kind, c.as_of, c.status, nullif(c.reason, '') as reason, c.requester,
       c.idempotency_key, convert_from(c.request, 'UTF8')::jsonb as request, c.accepted_at,
       c.deadline_at, c.ended_at, c.tokens_spent as tokens, c.tokens_max,
       case when not c.unpriced then c.cost_usd_spent end as cost_usd, c.cost_usd_max, c.data_version
from public.cycles c;

comment on view desk.cycles is 'One row per cycle.';
comment on column desk.cycles.cycle_id is 'Id of the cycle';
comment on column desk.cycles.kind is 'decision, exit, strategy, snapshot, report or probe';
comment on column desk.cycles.as_of is 'Session of the decision: the cycle sees nothing later';
comment on column desk.cycles.status is 'running, completed, failed, cancelled, rejected or expired';
comment on column desk.cycles.reason is 'Why it did not complete; null where it did';
comment on column desk.cycles.requester is 'Identity that requested it; study for cells of a study';
comment on column desk.cycles.idempotency_key is 'Key of the request: the same key is never run twice';
comment on column desk.cycles.request is 'The request as it was accepted';
comment on column desk.cycles.accepted_at is 'Time of acceptance';
comment on column desk.cycles.deadline_at is 'End of its time limit; waiting for a person moves it';
comment on column desk.cycles.ended_at is 'Time of its end; null while it runs';
comment on column desk.cycles.tokens is 'Tokens of all its model calls';
comment on column desk.cycles.tokens_max is 'Its token budget';
comment on column desk.cycles.cost_usd is 'Cost of its model calls; null where a model has no known price';
comment on column desk.cycles.cost_usd_max is 'Its cost budget';
comment on column desk.cycles.data_version is 'State of the market data that it read; null of a live source';


create view desk.operations as
select c.cycle_id as op_id, null::uuid as parent_id, c.cycle_id,
       case c.kind when 'strategy' then 'agent_research' else 'cycle' end as type, c.kind as name,
       case when c.status in ('rejected', 'expired') then 'failed' else c.status end as status,
       null::text as pipeline, null::text as account, null::text as state,
       'orchestrator' as service, 1 as attempt, c.as_of,
       case c.status when 'completed' then 100 else 0 end::numeric as progress_pct,
       ''::text as progress_step, convert_from(c.request, 'UTF8')::jsonb as request,
       null::jsonb as result,
       case when c.status not in ('running', 'completed') then nullif(c.reason, '') end
           as error_message,
       c.tokens_spent as tokens, case when not c.unpriced then c.cost_usd_spent end as cost_usd,
       c.accepted_at as created_at, c.accepted_at as started_at, c.ended_at as finished_at
from public.cycles c
union all
select o.op_id, o.cycle_id, o.cycle_id,
       case o.step when 'design' then 'agent_design' when 'train' then 'training'
           when 'backtest' then 'backtesting' when 'assess' then 'agent_assessment'
           else 'operation' end,
       o.step, o.status, o.pipeline, o.account, o.state, o.service, o.attempt, o.as_of,
       case o.status when 'completed' then 100
           else coalesce((o.progress ->> 'percentage')::numeric, 0) end,
       coalesce(o.progress ->> 'step', ''), convert_from(o.command, 'UTF8')::jsonb,
       convert_from(o.result, 'UTF8')::jsonb, o.failure ->> 'message', o.tokens,
       case when not o.unpriced then o.cost_usd end, o.created_at, o.started_at, o.finished_at
from public.operations o;

comment on view desk.operations is 'One row per operation, and one per cycle: the parent of its operations.';
comment on column desk.operations.op_id is 'Id of the operation; of a cycle, the cycle''s id';
comment on column desk.operations.parent_id is 'The cycle; null for a cycle';
comment on column desk.operations.cycle_id is 'The cycle';
comment on column desk.operations.type is
    'cycle or operation; of a strategy cycle agent_research, agent_design, training, backtesting, agent_assessment';
comment on column desk.operations.name is 'Kind of the cycle, or step of the operation: plan, picks, execute';
comment on column desk.operations.status is 'pending, running, completed, failed or cancelled';
comment on column desk.operations.pipeline is 'Pipeline; shared for steps that all pipelines share';
comment on column desk.operations.account is 'Account that the pipeline trades';
comment on column desk.operations.state is 'State of the workflow: scanning, planning, deciding';
comment on column desk.operations.service is 'Service that does it';
comment on column desk.operations.attempt is 'Number of the attempt, from 1';
comment on column desk.operations.as_of is 'Session of the decision';
comment on column desk.operations.progress_pct is 'Progress, 0 to 100';
comment on column desk.operations.progress_step is 'What it is doing';
comment on column desk.operations.request is 'Input: the request of a cycle, the command of an operation';
comment on column desk.operations.result is 'Output: the contract of an operation; null for a cycle';
comment on column desk.operations.error_message is 'Why it failed or was cancelled';
comment on column desk.operations.tokens is 'Tokens of its model calls';
comment on column desk.operations.cost_usd is 'Cost of its model calls; null where a model has no known price';
comment on column desk.operations.created_at is 'Time it was made';
comment on column desk.operations.started_at is 'Time a service took it; null before';
comment on column desk.operations.finished_at is 'Time of its end; null before';


create view desk.calls as
select o.cycle_id, j.op_id, j.index, o.pipeline, o.account, o.as_of, o.state, o.step, e.call ->> 'kind' as kind,
       e.call ->> 'name' as name, e.call -> 'request' as request, e.call -> 'reply' as reply,
       case e.call ->> 'kind' when 'model' then e.call #>> '{reply,fault,code}'
           when 'tool' then e.call #>> '{reply,error,code}' end as fault,
       (e.call ->> 'passed')::boolean as passed, (e.call ->> 'duration_ms')::numeric as duration_ms,
       j.recorded_at
from public.operations o
join public.journal j on j.started_on = o.started_on and j.op_id = o.op_id
cross join lateral (select convert_from(j.entry, 'UTF8')::jsonb as call offset 0) e;

comment on view desk.calls is 'One row per journalled call: model turn, tool result or other read.';
comment on column desk.calls.cycle_id is 'The cycle';
comment on column desk.calls.op_id is 'The operation that made the call';
comment on column desk.calls.index is 'Number of the call in its operation, from 0';
comment on column desk.calls.pipeline is 'Pipeline';
comment on column desk.calls.account is 'Account that the pipeline trades';
comment on column desk.calls.as_of is 'Session of the decision';
comment on column desk.calls.state is 'State of the workflow';
comment on column desk.calls.step is 'Step of the operation';
comment on column desk.calls.kind is 'model, tool or read';
comment on column desk.calls.name is 'Tool or read; of a model, provider:model';
comment on column desk.calls.request is 'What was asked; of a model, the hashes of the texts it was sent (see prompts)';
comment on column desk.calls.reply is 'The reply';
comment on column desk.calls.fault is 'Code of the error; null where there was none';
comment on column desk.calls.passed is 'Whether an answer met its contract; null where nothing was checked';
comment on column desk.calls.duration_ms is 'Duration in milliseconds';
comment on column desk.calls.recorded_at is 'Time it was committed';


create view desk.model_calls as
select c.cycle_id, c.op_id, c.index, c.pipeline, c.account, c.as_of, c.state, c.step,
       c.request ->> 'agent' as agent, split_part(c.name, ':', 1) as provider,
       substr(c.name, position(':' in c.name) + 1) as model,
       u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens, u.unsorted_tokens,
       u.input_tokens + u.output_tokens + u.cache_read_tokens + u.cache_write_tokens + u.unsorted_tokens
           as tokens,
       (c.usage ->> 'cost_usd')::numeric as cost_usd, c.reused, c.fault, c.duration_ms, c.recorded_at
from (
    select o.cycle_id, j.op_id, j.index, o.pipeline, o.account, o.as_of, o.state, o.step, j.recorded_at,
           e.call -> 'request' as request, e.call ->> 'name' as name, e.call -> 'usage' as usage,
           coalesce((e.call ->> 'reused')::boolean, false) as reused,
           e.call #>> '{reply,fault,code}' as fault, (e.call ->> 'duration_ms')::numeric as duration_ms
    from public.operations o
    join public.journal j on j.started_on = o.started_on and j.op_id = o.op_id
    cross join lateral (select convert_from(j.entry, 'UTF8')::jsonb as call offset 0) e
    where e.call ->> 'kind' = 'model'
) c
cross join lateral (
    select coalesce((c.usage ->> 'input_tokens')::bigint, 0) as input_tokens,
           coalesce((c.usage ->> 'output_tokens')::bigint, 0) as output_tokens,
           coalesce((c.usage ->> 'cache_read_tokens')::bigint, 0) as cache_read_tokens,
           coalesce((c.usage ->> 'cache_write_tokens')::bigint, 0) as cache_write_tokens,
           coalesce((c.usage ->> 'unsorted_tokens')::bigint, 0) as unsorted_tokens
) u;

comment on view desk.model_calls is 'One row per model call, with tokens and cost. Tokens reserved for a call whose reply never came count in operations and cycles only.';
comment on column desk.model_calls.cycle_id is 'The cycle';
comment on column desk.model_calls.op_id is 'The operation that made the call';
comment on column desk.model_calls.index is 'Number of the call in its operation, as in calls';
comment on column desk.model_calls.pipeline is 'Pipeline';
comment on column desk.model_calls.account is 'Account that the pipeline trades';
comment on column desk.model_calls.as_of is 'Session of the decision';
comment on column desk.model_calls.state is 'State of the workflow';
comment on column desk.model_calls.step is 'Step of the operation';
comment on column desk.model_calls.agent is 'Agent: sentiment, planner, quant, research, trader, risk, memory; null for a repeated attempt';
comment on column desk.model_calls.provider is 'Provider';
comment on column desk.model_calls.model is 'Model';
comment on column desk.model_calls.input_tokens is 'Input tokens';
comment on column desk.model_calls.output_tokens is 'Output tokens';
comment on column desk.model_calls.cache_read_tokens is 'Input tokens read from the provider''s cache';
comment on column desk.model_calls.cache_write_tokens is 'Input tokens written to it';
comment on column desk.model_calls.unsorted_tokens is 'Tokens of unknown kind, counted at their maximum';
comment on column desk.model_calls.tokens is 'All of them';
comment on column desk.model_calls.cost_usd is 'Cost; null where the model has no known price';
comment on column desk.model_calls.reused is 'Whether the answer was on record already and cost nothing';
comment on column desk.model_calls.fault is 'Code of the error; null where there was a reply';
comment on column desk.model_calls.duration_ms is 'Duration in milliseconds';
comment on column desk.model_calls.recorded_at is 'Time it was committed';


create view desk.prompts as
select c.cycle_id, c.op_id, c.index, c.pipeline, c.account, c.as_of, c.step, t.place::int as place,
       t.part, t.sha256, p.text
from (
    select o.cycle_id, j.op_id, j.index, o.pipeline, o.account, o.as_of, o.step,
           date_trunc('month', o.started_on::timestamp)::date as month, e.call -> 'request' as request
    from public.operations o
    join public.journal j on j.started_on = o.started_on and j.op_id = o.op_id
    cross join lateral (select convert_from(j.entry, 'UTF8')::jsonb as call offset 0) e
    where e.call ->> 'kind' = 'model'
) c
cross join lateral (
    select row_number() over (order by turn, piece) as place, part, sha256
    from (
        select -2 as turn, 0::bigint as piece, 'system' as part, c.request ->> 'system_sha256' as sha256
        union all
        select -1, 0, case when c.request ->> 'output' = 'true' then 'schema' else 'tools' end,
               c.request ->> 'schema_sha256'
        union all
        select turn, piece, message ->> 'role', sha256
        from jsonb_array_elements(c.request -> 'messages') with ordinality as m (message, turn),
             jsonb_array_elements_text(message -> 'sha256') with ordinality as s (sha256, piece)
    ) named
    where sha256 is not null
) t
left join public.prompt_texts p on p.started_on = c.month and p.sha256 = decode(t.sha256, 'hex');

comment on view desk.prompts is 'One row per text that a model was sent, exactly as sent, in order. They hold positions and cash.';
comment on column desk.prompts.cycle_id is 'The cycle';
comment on column desk.prompts.op_id is 'The operation that made the call';
comment on column desk.prompts.index is 'Number of the call in its operation, as in calls';
comment on column desk.prompts.pipeline is 'Pipeline';
comment on column desk.prompts.account is 'Account that the pipeline trades';
comment on column desk.prompts.as_of is 'Session of the decision';
comment on column desk.prompts.step is 'Step of the operation';
comment on column desk.prompts.place is 'Place of the text in its call, from 1';
comment on column desk.prompts.part is 'system, tools or schema, user, tool';
comment on column desk.prompts.sha256 is 'SHA-256 of the text, in hex';
comment on column desk.prompts.text is 'The text; null for the result of a tool (see calls), and where retention dropped it';


create view desk.events as
select e.cycle_id, e.op_id, e.seq, e.type, e.owner, e.pipeline, e.state, e.session_id, e.at, e.data, e.xid, e.id
from public.state_events e;

comment on view desk.events is 'One row per event of the audit. Order them by xid, id: the order in which they are published.';
comment on column desk.events.cycle_id is 'The cycle';
comment on column desk.events.op_id is 'The operation, pipeline, cycle or order that it is about';
comment on column desk.events.seq is 'Number of the event of that op_id, from 0';
comment on column desk.events.type is 'Type: state_entered, llm_response, order_filled';
comment on column desk.events.owner is 'Service that wrote it';
comment on column desk.events.pipeline is 'Pipeline';
comment on column desk.events.state is 'State of the workflow';
comment on column desk.events.session_id is 'Account and exchange session';
comment on column desk.events.at is 'Time of the event';
comment on column desk.events.data is 'Its data, by type';
comment on column desk.events.xid is 'Transaction that wrote it; the first part of the order';
comment on column desk.events.id is 'The second part of the order';


create view desk.decisions as
select o.cycle_id, c.kind, c.requester, o.pipeline, o.account, o.as_of, o.finished_at as decided_at,
       (d.body ->> 'passed')::boolean as passed, jsonb_array_length(d.body -> 'decisions') as orders_allowed,
       array(select jsonb_array_elements_text(d.body -> 'vetoed_tickers')) as vetoed_tickers,
       array(select jsonb_array_elements_text(d.body -> 'adjustments')) as adjustments,
       d.body ->> 'proposal_hash' as proposal_hash, (d.body ->> 'synthetic')::boolean as synthetic,
       d.body as decision, convert_from(x.result, 'UTF8')::jsonb as execution
from public.operations o
join public.cycles c on c.cycle_id = o.cycle_id
left join public.operations x on x.cycle_id = o.cycle_id and x.pipeline = o.pipeline
    and x.step = 'execute' and x.status = 'completed'
cross join lateral (select convert_from(o.result, 'UTF8')::jsonb as body offset 0) d
where o.step in ('validate', 'validate_exits') and o.status = 'completed';

comment on view desk.decisions is 'One row per decision of a pipeline, as the risk rules left it.';
comment on column desk.decisions.cycle_id is 'The cycle';
comment on column desk.decisions.kind is 'Kind of the cycle: decision or exit';
comment on column desk.decisions.requester is 'Identity that requested it; study for cells of a study';
comment on column desk.decisions.pipeline is 'Pipeline';
comment on column desk.decisions.account is 'Account that it trades';
comment on column desk.decisions.as_of is 'Session of the decision';
comment on column desk.decisions.decided_at is 'Time of the decision';
comment on column desk.decisions.passed is 'Whether the rules left anything to order';
comment on column desk.decisions.orders_allowed is 'Number of orders that they left';
comment on column desk.decisions.vetoed_tickers is 'Tickers that the reviewer or a rule vetoed';
comment on column desk.decisions.adjustments is 'Every change by a rule, in words';
comment on column desk.decisions.proposal_hash is 'Hash of the orders: an approval is bound to it';
comment on column desk.decisions.synthetic is 'Whether the prices are synthetic';
comment on column desk.decisions.decision is 'The whole DecisionValidation';
comment on column desk.decisions.execution is 'The whole ExecutionResult; null where nothing was executed';


create view desk.proposals as
select d.cycle_id, d.kind, d.pipeline, d.account, d.as_of, p.ticker, p.action, p.wanted_pct, p.confidence,
       coalesce(r.outcome, 'kept') as outcome, p.allowed_pct, p.quantity, p.price, p.currency,
       r.rule, r.value, r.limit_value, p.reasoning
from desk.decisions d
cross join lateral (
    select coalesce(wanted.ticker, left_over.asset) as ticker, coalesce(wanted.action, left_over.action) as action,
           wanted.allocation_pct as wanted_pct, coalesce(wanted.confidence, left_over.confidence) as confidence,
           coalesce(wanted.reasoning, left_over.reasoning) as reasoning, left_over.allocation_pct as allowed_pct,
           trim_scale(left_over.quantity) as quantity, trim_scale((left_over.price ->> 'amount')::numeric) as price,
           left_over.price ->> 'currency' as currency
    from jsonb_to_recordset(d.decision -> 'proposals')
        as wanted (ticker text, action text, allocation_pct numeric, confidence numeric, reasoning text)
    full join jsonb_to_recordset(d.decision -> 'decisions')
        as left_over (asset text, action text, allocation_pct numeric, confidence numeric, reasoning text,
                      quantity numeric, price jsonb)
        on left_over.asset = wanted.ticker and left_over.action = wanted.action
) p
left join lateral (
    select it.outcome, it.rule, it.value, it."limit" as limit_value
    from rows from (jsonb_to_recordset(d.decision -> 'checks')
        as (rule text, ticker text, outcome text, value text, "limit" text))
        with ordinality as it (rule, ticker, outcome, value, "limit", place)
    where it.ticker = p.ticker and it.outcome <> 'kept'
    order by it.outcome = 'vetoed' desc, it.place
    limit 1
) r on true;

comment on view desk.proposals is 'One row per proposed trade: what was wanted, and what the rules left of it.';
comment on column desk.proposals.cycle_id is 'The cycle';
comment on column desk.proposals.kind is 'Kind of the cycle: decision or exit';
comment on column desk.proposals.pipeline is 'Pipeline';
comment on column desk.proposals.account is 'Account that it trades';
comment on column desk.proposals.as_of is 'Session of the decision';
comment on column desk.proposals.ticker is 'Ticker';
comment on column desk.proposals.action is 'buy or sell';
comment on column desk.proposals.wanted_pct is 'Proposed share: of the budget for a buy, of the position for a sale';
comment on column desk.proposals.confidence is 'Stated confidence, 0 to 1';
comment on column desk.proposals.outcome is 'kept, cut or vetoed';
comment on column desk.proposals.allowed_pct is 'Share that the rules left; null where they left nothing';
comment on column desk.proposals.quantity is 'Shares that they left';
comment on column desk.proposals.price is 'Price it was sized at';
comment on column desk.proposals.currency is 'Currency of the price';
comment on column desk.proposals.rule is 'Rule that vetoed it, or the first that cut it';
comment on column desk.proposals.value is 'What that rule saw';
comment on column desk.proposals.limit_value is 'Its limit';
comment on column desk.proposals.reasoning is 'Reasons for the proposal, in words';


create view desk.checks as
select d.cycle_id, d.kind, d.pipeline, d.account, d.as_of, it.place::int as place, it.rule, it.ticker, it.outcome,
       it.passed, it.value, it."limit" as limit_value, it.reason
from desk.decisions d
cross join lateral rows from (jsonb_to_recordset(d.decision -> 'checks')
    as (rule text, ticker text, outcome text, passed boolean, value text, "limit" text, reason text))
    with ordinality as it (rule, ticker, outcome, passed, value, "limit", reason, place);

comment on view desk.checks is 'One row per risk rule and ticker of a decision.';
comment on column desk.checks.cycle_id is 'The cycle';
comment on column desk.checks.kind is 'Kind of the cycle: decision or exit';
comment on column desk.checks.pipeline is 'Pipeline';
comment on column desk.checks.account is 'Account that it trades';
comment on column desk.checks.as_of is 'Session of the decision';
comment on column desk.checks.place is 'Place among the checks of the decision, from 1';
comment on column desk.checks.rule is 'Rule';
comment on column desk.checks.ticker is 'Ticker; null for the whole proposal';
comment on column desk.checks.outcome is 'kept, cut or vetoed';
comment on column desk.checks.passed is 'Whether the rule was met';
comment on column desk.checks.value is 'What it saw';
comment on column desk.checks.limit_value is 'Its limit';
comment on column desk.checks.reason is 'Reason, in words';


create view desk.not_bought as
select o.cycle_id, o.pipeline, o.account, o.as_of, it.ticker, it.cause, it.name as rule, it.value,
       it."limit" as limit_value, trim_scale((it.buys_above ->> 'amount')::numeric) as buys_above,
       it.buys_above ->> 'currency' as currency, it.why
from public.operations o
cross join lateral jsonb_to_recordset(convert_from(o.result, 'UTF8')::jsonb -> 'passed')
    as it (ticker text, cause text, name text, value text, "limit" text, buys_above jsonb, why text)
where o.step = 'picks' and o.status = 'completed';

comment on view desk.not_bought is 'One row per reason not to propose a buy of a ticker, as it stood when the trader picked.';
comment on column desk.not_bought.cycle_id is 'The cycle';
comment on column desk.not_bought.pipeline is 'Pipeline';
comment on column desk.not_bought.account is 'Account that it trades';
comment on column desk.not_bought.as_of is 'Session of the decision';
comment on column desk.not_bought.ticker is 'Ticker';
comment on column desk.not_bought.cause is 'rule: a risk rule leaves no room; threshold: a stated rule of the trader was not met; own_words: the reason of the model';
comment on column desk.not_bought.rule is 'Name of the risk rule or threshold; empty for own_words';
comment on column desk.not_bought.value is 'What it saw';
comment on column desk.not_bought.limit_value is 'Its limit';
comment on column desk.not_bought.buys_above is 'Price above which it would have been proposed; null where no price would do, and for a rule';
comment on column desk.not_bought.currency is 'Currency of that price';
comment on column desk.not_bought.why is 'Reason, in words';


create view desk.approvals as
select o.cycle_id, o.pipeline, o.account, o.as_of, o.status, o.created_at as asked_at,
       o.deadline_at as expires_at, a.body ->> 'verdict' as verdict, a.body ->> 'approver' as approver,
       a.body ->> 'reason' as reason, (a.body ->> 'decided_at')::timestamptz as decided_at
from public.operations o
cross join lateral (select convert_from(o.result, 'UTF8')::jsonb as body offset 0) a
where o.step = 'approval';

comment on view desk.approvals is 'One row per proposal that a person was asked about.';
comment on column desk.approvals.cycle_id is 'The cycle';
comment on column desk.approvals.pipeline is 'Pipeline';
comment on column desk.approvals.account is 'Account that it trades';
comment on column desk.approvals.as_of is 'Session of the decision';
comment on column desk.approvals.status is 'pending while it waits; completed once it is answered';
comment on column desk.approvals.asked_at is 'Time of the question';
comment on column desk.approvals.expires_at is 'Time at which it expires';
comment on column desk.approvals.verdict is 'approve, reject or edit; null without an answer';
comment on column desk.approvals.approver is 'Identity that answered';
comment on column desk.approvals.reason is 'Its reason';
comment on column desk.approvals.decided_at is 'Time of the answer';


create view desk.accounts as
select a.account, a.currency, a.main, a.clock, a.opened_on, a.opened_at, a.starting_cash,
       coalesce(b.amount, 0) as cash,
       coalesce((select l.limits from public.limit_changes l
                 where l.account = a.account order by l.number desc limit 1), a.limits) as limits,
       exists (select from public.halts h where h.account is null or h.account = a.account) as halted
from public.accounts a
left join public.balances b on b.account = a.account and b.book = 'cash';

comment on view desk.accounts is 'One row per account, as it stands now.';
comment on column desk.accounts.account is 'Name of the account; study-... for those of studies';
comment on column desk.accounts.currency is 'Currency of all its amounts';
comment on column desk.accounts.main is 'Whether it is the main account';
comment on column desk.accounts.clock is 'Newest session that it has seen';
comment on column desk.accounts.opened_on is 'Session of its opening';
comment on column desk.accounts.opened_at is 'Time of its opening';
comment on column desk.accounts.starting_cash is 'Cash at its opening';
comment on column desk.accounts.cash is 'Cash now';
comment on column desk.accounts.limits is 'Risk limits in force';
comment on column desk.accounts.halted is 'Whether its buys are halted';


create view desk.orders as
select o.order_id, o.cycle_id, o.op_id, o.pipeline, o.account, o.as_of, o.placed_at, o.ticker, o.sector, o.side,
       o.type, trim_scale(o.quantity) as quantity, o.status, nullif(o.reason, '') as reason,
       trim_scale(o.stop_price) as stop_price, o.exit as is_exit, o.exit_rules, nullif(o.thesis, '') as thesis,
       f.session as filled_on, trim_scale(f.price) as price, trim_scale(f.quantity) as filled_quantity, f.fee,
       booked.cash, booked.realised, a.currency
from public.orders o
join public.accounts a on a.account = o.account
left join public.fills f on f.order_id = o.order_id
left join lateral (
    select sum(p.amount) filter (where p.book = 'cash') as cash,
           -sum(p.amount) filter (where p.book = 'realised') as realised
    from public.postings p where p.entry_id = f.entry_id
) booked on true;

comment on view desk.orders is 'One row per order, with its fill and what that came to.';
comment on column desk.orders.order_id is 'Id of the order';
comment on column desk.orders.cycle_id is 'Cycle that placed it';
comment on column desk.orders.op_id is 'Operation that placed it';
comment on column desk.orders.pipeline is 'Pipeline';
comment on column desk.orders.account is 'Account';
comment on column desk.orders.as_of is 'Session of the decision';
comment on column desk.orders.placed_at is 'Time it was placed';
comment on column desk.orders.ticker is 'Ticker';
comment on column desk.orders.sector is 'Sector of the ticker';
comment on column desk.orders.side is 'buy or sell';
comment on column desk.orders.type is 'market or stop';
comment on column desk.orders.quantity is 'Shares ordered; a stop follows splits and sales of its position';
comment on column desk.orders.status is 'working, waiting (a stop), filled, rejected or cancelled';
comment on column desk.orders.reason is 'Why it was cut, rejected or cancelled, or still works';
comment on column desk.orders.stop_price is 'Price that triggers it, in the currency that the ticker trades in; of a market order, the price of the stop after its fill';
comment on column desk.orders.is_exit is 'Whether an exit check proposed it';
comment on column desk.orders.exit_rules is 'Exit rules that fired; null where none did';
comment on column desk.orders.thesis is 'Why it was bought';
comment on column desk.orders.filled_on is 'Session of the fill; null before';
comment on column desk.orders.price is 'Price of the fill, slippage included';
comment on column desk.orders.filled_quantity is 'Shares filled';
comment on column desk.orders.fee is 'Fee of the fill';
comment on column desk.orders.cash is 'Cash that the fill moved, fee included: negative for a buy';
comment on column desk.orders.realised is 'Of a sale: proceeds less the average cost of the shares sold, before its fee';
comment on column desk.orders.currency is 'Currency of price, fee, cash and realised: the account''s';


create view desk.positions as
select b.account, b.ticker, trim_scale(b.quantity) as quantity, b.amount as cost, b.opened_on,
       s.session as valued_on, trim_scale((s.close ->> 'amount')::numeric) as price,
       trim_scale(b.quantity * (s.close ->> 'amount')::numeric) as value, a.currency
from public.balances b
join public.accounts a on a.account = b.account
left join lateral (
    select n.session, it as close
    from (select session, closes from public.snapshots
          where account = b.account order by session desc limit 1) n,
         jsonb_array_elements(n.closes) it
    where it ->> 'ticker' = b.ticker
) s on true
where b.book = 'position' and b.quantity > 0;

comment on view desk.positions is 'One row per position that is held now.';
comment on column desk.positions.account is 'Account';
comment on column desk.positions.ticker is 'Ticker';
comment on column desk.positions.quantity is 'Shares held';
comment on column desk.positions.cost is 'What they cost, fees left out';
comment on column desk.positions.opened_on is 'Session since which something of it is held';
comment on column desk.positions.valued_on is 'Session of the price; null before its first close';
comment on column desk.positions.price is 'Price of one share at that close';
comment on column desk.positions.value is 'Shares times price';
comment on column desk.positions.currency is 'Currency of all amounts: the account''s';


create view desk.ledger as
select e.entry_id, p.line, e.account, e.session, e.kind, e.key, coalesce(p.ticker, e.ticker) as ticker, p.book,
       p.amount, trim_scale(p.quantity) as quantity, coalesce(p.currency, a.currency) as traded_currency,
       coalesce(p.foreign_amount, p.amount) as traded_amount, a.currency, e.memo, e.at
from public.entries e
join public.postings p on p.entry_id = e.entry_id
join public.accounts a on a.account = e.account;

comment on view desk.ledger is 'One row per line of the double entry. The lines of an entry sum to zero; debit is positive, credit negative.';
comment on column desk.ledger.entry_id is 'Number of the entry';
comment on column desk.ledger.line is 'Number of the line in its entry';
comment on column desk.ledger.account is 'Account';
comment on column desk.ledger.session is 'Session at which it took effect';
comment on column desk.ledger.kind is 'open, fill, split, dividend, deposit or withdrawal';
comment on column desk.ledger.key is 'What happened: nothing is posted twice under one key';
comment on column desk.ledger.ticker is 'Ticker; null where cash alone moved';
comment on column desk.ledger.book is 'cash, position, fees, realised, dividends, capital or exchange';
comment on column desk.ledger.amount is 'Amount';
comment on column desk.ledger.quantity is 'Shares; 0 outside the book position';
comment on column desk.ledger.traded_currency is 'Currency that it was traded in';
comment on column desk.ledger.traded_amount is 'Amount in that currency';
comment on column desk.ledger.currency is 'Currency of the amount: the account''s';
comment on column desk.ledger.memo is 'What happened, in words';
comment on column desk.ledger.at is 'Time of posting';


create view desk.equity as
select s.account, s.session, s.equity, s.cash, s.positions, s.paid_in, s.realised, s.unrealised, s.dividends, s.fees,
       s.exposure_gross, s.exposure_net, s.unpriced, a.currency
from public.snapshots s
join public.accounts a on a.account = s.account;

comment on view desk.equity is 'One row per account and session, at that session''s close.';
comment on column desk.equity.account is 'Account';
comment on column desk.equity.session is 'Session';
comment on column desk.equity.equity is 'Cash and positions; null where unpriced names a ticker';
comment on column desk.equity.cash is 'Cash';
comment on column desk.equity.positions is 'Value of all positions';
comment on column desk.equity.paid_in is 'What the owner has paid in, less what was taken out';
comment on column desk.equity.realised is 'Gains of sales since the opening, before fees';
comment on column desk.equity.unrealised is 'Gain of what is held';
comment on column desk.equity.dividends is 'Dividends since the opening';
comment on column desk.equity.fees is 'Fees since the opening';
comment on column desk.equity.exposure_gross is 'Value of all positions, each as a positive number';
comment on column desk.equity.exposure_net is 'Long less short positions';
comment on column desk.equity.unpriced is 'Tickers that nobody can value';
comment on column desk.equity.currency is 'Currency of all amounts';


grant usage on schema desk to deskbus_console;
grant select on all tables in schema desk to deskbus_console;
alter default privileges in schema desk grant select on tables to deskbus_console;
