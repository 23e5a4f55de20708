"""Imported by a command that a test starts: its upload to MLflow goes on beside the tests as fast
as these do.

A user's upload leaves the processors to the solvers, and is given up after a minute without
progress. On a machine that other tests keep busy it would not even have imported MLflow by then.
"""

import math

from raysel.tracking import upload_process

upload_process._PROGRAM = (
    "from raysel.tracking.upload_process import main; raise SystemExit(main())"
)
upload_process.MLflowUploader.finish.__defaults__ = (math.inf, upload_process.quiet)
