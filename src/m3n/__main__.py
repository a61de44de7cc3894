"""``python -m m3n``: the command line."""

from m3n.cli import main

if __name__ == "__main__":
    main()
