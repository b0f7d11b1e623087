-- A body that is kept again is as if it were new: retention looks at when it was kept last.
grant update (kept_at) on bodies to deskbus_orchestrator;
