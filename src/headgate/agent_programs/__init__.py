"""What each agent program needs in its configuration to reach Headgate; values in, values out."""
