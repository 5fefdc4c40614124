"""Worker processes and the wires to them; carries out what the scheduler decides."""
