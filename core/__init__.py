"""The vocabulary, errors, settings and clock that every other room speaks in."""
