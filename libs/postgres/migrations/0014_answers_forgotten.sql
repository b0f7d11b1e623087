-- What studies have paid for is kept for as long as DESKBUS_STUDY_ANSWERS_KEPT_S says, the oldest go.
create index study_answers_by_age on study_answers (kept_at);
grant delete on study_answers to deskbus_orchestrator;
