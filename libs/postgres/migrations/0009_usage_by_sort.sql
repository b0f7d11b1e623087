-- What calls used by sort of token. `tokens` and `tokens_spent` stay the whole: what they hold beyond
-- these four is of no known sort (a reply that never came), or from before this migration.
alter table operations
    add column input_tokens bigint not null default 0,
    add column output_tokens bigint not null default 0,
    add column cache_read_tokens bigint not null default 0,
    add column cache_write_tokens bigint not null default 0;
alter table cycles
    add column input_tokens bigint not null default 0,
    add column output_tokens bigint not null default 0,
    add column cache_read_tokens bigint not null default 0,
    add column cache_write_tokens bigint not null default 0;
alter table day_budgets
    add column input_tokens bigint not null default 0,
    add column output_tokens bigint not null default 0,
    add column cache_read_tokens bigint not null default 0,
    add column cache_write_tokens bigint not null default 0;
