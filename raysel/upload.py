"""Command ``python -m raysel.upload``, which copies the directory of a study to a URI."""

import sys

from raysel.cli.main import main_of

main = main_of("upload")

if __name__ == "__main__":
    sys.exit(main())
