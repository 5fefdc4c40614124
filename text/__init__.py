"""From what a person wrote to what a voice says: clean, normalise, find the language, split."""
