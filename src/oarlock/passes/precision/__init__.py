"""Passes that change how values are rounded: mixed precision for training, integers for inference."""
