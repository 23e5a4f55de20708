"""Command ``python -m raysel.compare``, which prints a comparison again, or joins those of
several data sets.
"""

import sys

from raysel.cli.main import main_of

main = main_of("compare")

if __name__ == "__main__":
    sys.exit(main())
