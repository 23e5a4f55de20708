"""Finished studies on few samples, computed in this process without MLflow."""

from __future__ import annotations

from raysel.config import config_from_dict
from raysel.execution import runner
from raysel.execution.serial import SerialExecutor
from raysel.study.definition import Study


class NoUpload:
    """Upload to MLflow that does nothing."""

    def __init__(self, directory):
        pass

    def finish(self, patience=None):
        pass


def run_quietly(raw, folder):
    """Run a study and return its directory."""
    study = Study.prepare(config_from_dict(raw))
    return runner.run(study, folder, SerialExecutor(study), start_upload=NoUpload).path
