-- What models were sent: system prompts, tools, answer schemas and messages, each text once a month
-- under its SHA-256, however many calls refer to it. Kept by month as the journal is, so that a month
-- goes with all that its calls refer to.
create table prompt_texts (
    started_on date not null check (extract(day from started_on) = 1),   -- the month of the cycle
    sha256     bytea not null check (octet_length(sha256) = 32),
    text       text not null,
    primary key (started_on, sha256)
) partition by range (started_on);
create table prompt_texts_rest partition of prompt_texts default;

create or replace function ensure_partitions(month date) returns void
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    first date := date_trunc('month', month);
    after date := first + interval '1 month';
    parent text;
begin
    perform pg_advisory_xact_lock(hashtext('deskbus.partitions'));
    foreach parent in array array['journal', 'state_events', 'prompt_texts'] loop
        if to_regclass(format('%I', parent || to_char(first, '_YYYY_MM'))) is null then
            execute format('create table %I partition of %I for values from (%L) to (%L)',
                           parent || to_char(first, '_YYYY_MM'), parent, first, after);
        end if;
    end loop;
end $$;
select ensure_partitions(current_date), ensure_partitions((current_date + interval '1 month')::date);

grant select, insert on prompt_texts to deskbus_orchestrator;
