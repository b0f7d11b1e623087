"""The runtime that every process needs: settings, journal, ids, errors, start and stop."""
