"""Samples to bytes: tempo, joins, containers. Knows nothing of requests or engines."""
