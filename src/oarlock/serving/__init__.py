"""Serving models over HTTP: JSON, and the Open Inference Protocol v2."""
