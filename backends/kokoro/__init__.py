"""Kokoro-82M in int8 on onnxruntime: the embedded model, for any machine without a GPU."""

import os

# From 1.29 on onnxruntime reports models, hardware and use to its maker, unless this is set before it is imported.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
