"""Search by words and by meaning, behind one entrance."""
