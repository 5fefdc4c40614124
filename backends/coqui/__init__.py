"""XTTS-v2 by the Coqui library: seventeen languages, voices from a few seconds of somebody's speech."""
