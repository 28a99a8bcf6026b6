"""Typed operations: specification, registry, call pipeline, envelope."""
