"""Command ``python -m raysel.report``, which writes the report of a study or a comparison as one
HTML file.
"""

import sys

from raysel.cli.main import main_of

main = main_of("report")

if __name__ == "__main__":
    sys.exit(main())
