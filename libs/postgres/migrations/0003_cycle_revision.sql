-- How often a cycle was written. An orchestrator that still has a cycle's row from its last group
-- writes the next one without reading it again, and is refused where another has been faster.
alter table cycles add column revision int not null default 0;

create function refuse_stale(written bigint, given int) returns void language plpgsql as $$
begin
    if written <> given then
        raise exception '% of % cycles were changed by another orchestrator', given - written, given
            using errcode = 'serialization_failure';
    end if;
end $$;
revoke all on function refuse_stale(bigint, int) from public;
grant execute on function refuse_stale(bigint, int) to deskbus_orchestrator;
