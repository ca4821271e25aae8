"""``python -m survexec`` is the command line."""

from survexec.cli import main

if __name__ == "__main__":
    main()
