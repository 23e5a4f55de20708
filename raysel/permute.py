"""Command ``python -m raysel.permute``, which tests a finished study by permuted labels."""

import sys

from raysel.cli.permute import main

if __name__ == "__main__":
    sys.exit(main())
