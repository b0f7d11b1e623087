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

select ensure_partitions(current_date), ensure_partitions((current_date + interval '1 month')::date);

grant select, insert on prompt_texts to deskbus_orchestrator;
