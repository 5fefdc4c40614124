"""Kokoro-82M in int8 on onnxruntime: the embedded model, for any machine without a GPU."""
