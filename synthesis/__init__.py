"""The one way from a request to audio."""
