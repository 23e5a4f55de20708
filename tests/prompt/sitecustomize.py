"""In the path of commands that tests start: their uploads to MLflow go on beside the other tests as fast as these do.

A user's uploads leave the processors to the solvers, and are given up without progress for a minute. On a machine that
other tests keep busy they would not even have imported MLflow by then.
"""

import math
import sys

if any(name in word for name in ("raysel.tune", "submit.py", "MLflowUploader") for word in sys.orig_argv):
    from raysel.tracking import upload_process

    upload_process._PROGRAM = "from raysel.tracking.upload_process import main; raise SystemExit(main())"
    upload_process.MLflowUploader.finish.__defaults__ = (math.inf,)
