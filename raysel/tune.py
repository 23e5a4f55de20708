"""Command ``python -m raysel.tune``, which runs a study, or several that are compared."""

import sys

from raysel.cli.arguments import hide_credentials
from raysel.cli.tune import main

if __name__ == "__main__":
    hide_credentials()
    sys.exit(main())
