"""Answers that were made before, on disk; and those being made, for all who want the same one."""
