"""Speech engines, each alone in its process. The parent knows their names; only a child loads their code."""
