"""What must stay fast, measured as ratios against a named floor in the same run."""
