-- Answers of models that studies have paid for, as the role deskbus_orchestrator.

-- name: load
select address, reply from study_answers where address = any($1::bytea[])

-- name: keep
insert into study_answers (address, reply, op_id, index)
select * from unnest($1::bytea[], $2::bytea[], $3::uuid[], $4::int[])
on conflict do nothing

-- name: forget
delete from study_answers where address in (
    select address from study_answers
    where kept_at < clock_timestamp() - $1 * interval '1 second'
    order by kept_at limit $2)
