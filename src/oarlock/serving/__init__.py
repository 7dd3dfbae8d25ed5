"""A model served by HTTP: JSON, and the Open Inference Protocol v2."""
