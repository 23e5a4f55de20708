"""Command ``python -m raysel.trust``, which trusts the models of a study that another account
has written.
"""

import sys

from raysel.cli.main import main_of

main = main_of("trust")

if __name__ == "__main__":
    sys.exit(main())
