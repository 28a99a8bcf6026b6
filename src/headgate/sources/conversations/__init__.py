"""Conversations with AI assistants: exports of ChatGPT and Claude, transcripts of Claude Code and Codex."""
