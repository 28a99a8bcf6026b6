"""Looks for what keeps agents from connecting, and says what to do. `judging` decides, `probing` looks."""
