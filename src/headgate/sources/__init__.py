"""Records coming in: files, pushes, remote operations."""
