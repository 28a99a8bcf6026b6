"""``python -m headgate`` is the same as ``headgate``."""

from headgate.cli.main import run

if __name__ == "__main__":
    run()
