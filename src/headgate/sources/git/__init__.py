"""Commits of git repositories."""
