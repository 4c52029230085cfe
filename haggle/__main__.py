"""`python -m haggle` is the `haggle` command."""

from haggle.cli import main

if __name__ == "__main__":
    main()
