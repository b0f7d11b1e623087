"""The subject table: every message on the bus, who sends it and who hears it.

AsyncAPI, JSON Schemas, NATS permissions, streams and consumers are all derived from it.

    desk.v1.<class>.<owner>.<what>[.<id or caller>]

`req` users to the orchestrator, and to execution for the kill switch; `cmd` the orchestrator to one
service; `evt` facts for anyone, the cycle id last; `ntc` those of them that people may be told of,
once more, for the notifier; `ctl` the orchestrator to every instance of a service; `qry` request
and reply; `dlq` messages that could not be read. `req` and `qry` end with
the caller's name, and only that caller may publish there: the name is who it is. Tickers never
stand in a subject.

A module for each part of the desk that is spoken of: who asks about one loads that one's contracts.
`table` has all rows.
"""
