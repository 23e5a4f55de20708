"""Command ``python -m raysel.stability``, which runs stability selection on a finished study."""

import sys

from raysel.cli.main import main_of

main = main_of("stability")

if __name__ == "__main__":
    sys.exit(main())
