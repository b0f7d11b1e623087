"""The telemetry of a process: metrics, traces, logs and readiness."""
