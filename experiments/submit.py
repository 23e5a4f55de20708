"""Run a study on a cluster: the script that `ray submit` starts on the head node, see
conf/cluster/local.yaml.
"""

import os
import sys
from pathlib import Path

from raysel.tune import main

#: Where conf/cluster/*.yaml mount the folder of the study.
FOLDER = Path.home() / "raysel-work"

if __name__ == "__main__":
    os.chdir(FOLDER)
    sys.path[0] = str(FOLDER)  # the study's own methods are imported as by `python -m raysel.tune`
    # For the message that says how to resume.
    os.environ.setdefault("RAYSEL_COMMAND", "ray submit CLUSTER.yaml experiments/submit.py --")
    sys.exit(main(["--address", "auto", *sys.argv[1:]]))
