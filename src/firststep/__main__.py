"""``python -m firststep`` is the command line."""

from firststep.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
