"""Weights from a hub: what is to be had, how it comes over a bad line, and what is remembered of it."""
