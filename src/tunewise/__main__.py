"""`python -m tunewise` is the command line."""

from tunewise.cli import main

if __name__ == "__main__":
    main()
