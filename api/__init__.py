"""HTTP: parse a request, watch its client, send what the synthesizer makes."""
