"""In the path of what tests start: the commands that upload to MLflow do so at once."""

import sys
from pathlib import Path

if any(
    name in word
    for name in ("raysel.tune", "submit.py", "MLflowUploader")
    for word in sys.orig_argv
):
    sys.path.append(str(Path(__file__).parents[1]))
    import prompt_uploads  # noqa: F401
