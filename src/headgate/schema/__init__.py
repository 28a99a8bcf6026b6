"""Understand JSON Schemas and documents checked by them. Pure."""
