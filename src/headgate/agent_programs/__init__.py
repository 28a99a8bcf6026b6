"""What each agent program needs in its configuration; no file is read or written here."""
