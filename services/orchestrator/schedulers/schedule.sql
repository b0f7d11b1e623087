-- The schedule's statements, as the role deskbus_orchestrator.

-- name: meet
-- A job that is new here has no slots before now.
insert into schedule_jobs (job, looked_until)
select job, $2 from unnest($1::text[]) as job
on conflict do nothing

-- name: lock_job
-- Skipped where another orchestrator is looking: it sees the same.
select looked_until, paused_at from schedule_jobs where job = $1 for update skip locked

-- name: looked
update schedule_jobs set looked_until = greatest(looked_until, $2) where job = $1

-- name: put_slot
insert into schedule_slots (job, slot, session, as_of, accounts, request, outcome, late, missed,
                            by_whom)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict do nothing

-- name: due
-- In order. One waits while a late one of an earlier session is still at work on one of its accounts,
-- whose clock must not move past it.
select s.job, s.slot, s.as_of, s.request, s.made_at
from schedule_slots s
where s.outcome = 'due'
  and not exists (
      select from schedule_slots e
      where e.outcome = 'due' and e.slot < s.slot and e.as_of < s.as_of
        and e.accounts && s.accounts
  )
  and not exists (
      select from schedule_slots e join cycles c using (cycle_id)
      where e.outcome = 'accepted' and e.late and e.slot < s.slot and e.as_of < s.as_of
        and e.accounts && s.accounts and c.status = 'running'
  )
order by s.slot, s.job limit $1

-- name: unsettled
select job, slot, as_of, request, made_at from schedule_slots
where job = $1 and slot = $2 and outcome = 'due'

-- name: settle
update schedule_slots set outcome = $3, cycle_id = $4, reason = $5
where job = $1 and slot = $2 and outcome = 'due'

-- name: run
-- As people see it: contracts.schedule.JobRun.
select s.job, s.slot, s.session, s.as_of, s.outcome, s.cycle_id, s.missed, s.by_whom as by, c.status,
       coalesce(nullif(s.reason, ''), c.reason, '') as reason
from schedule_slots s left join cycles c using (cycle_id)
where s.job = $1 and s.slot = $2

-- name: pause
update schedule_jobs set paused_at = clock_timestamp(), paused_by = $2, paused_reason = $3
where job = $1 and paused_at is null

-- name: resume
-- What passed while it rested was not missed.
update schedule_jobs
set paused_at = null, paused_by = '', paused_reason = '', looked_until = greatest(looked_until, $2)
where job = $1 and paused_at is not null
