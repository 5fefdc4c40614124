"""Who speaks next. Pure policy: events and time in, commands out."""
