"""What every process needs: settings, logging, journal, embedded servers, start and stop."""
