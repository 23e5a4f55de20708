"""Command ``python -m raysel.permute``, which tests a finished study by permuted labels."""

import sys

from raysel.cli.main import main_of

main = main_of("permute")

if __name__ == "__main__":
    sys.exit(main())
