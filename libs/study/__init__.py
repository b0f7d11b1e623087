"""Studies: which arm decides better, and what is luck. Only the study service, its commands and its
HTTP paths import this."""
