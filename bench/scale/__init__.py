"""What many homes in one database need: a part is measured on this machine, the rest is computed from it."""
