"""The voices that a request can name."""
