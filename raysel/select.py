"""Command ``python -m raysel.select``, which exports the ranking of a finished study and the
features it selects.
"""

import sys

from raysel.cli.main import make_main

main = make_main("select")

if __name__ == "__main__":
    sys.exit(main())
