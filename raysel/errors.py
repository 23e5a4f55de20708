"""The errors raysel raises on purpose: one message that names the culprit and the mend."""

from __future__ import annotations

from pathlib import Path


class RayselError(Exception):
    """Base of every error that raysel raises on purpose."""


class ConfigError(RayselError, ValueError):
    """A setting is unknown, of the wrong type, out of range, or does not fit the data."""


class DataError(RayselError, ValueError):
    """A data set cannot be read, or what it holds cannot be used."""


class StudyError(RayselError):
    """A study cannot start, go on or be read: its directory, the disk, or its trials."""


class DirectoryError(StudyError):
    """A study's directory cannot be used: another runs or ran there, it is damaged, or nothing can be written."""


class UnfinishedStudyError(StudyError):
    """A result is asked of a study that has not finished.

    Parameters
    ----------
    path : Path
        The study's directory.
    n_done, n_trials : int
        Number of trials that have ended, and of all.
    """

    def __init__(self, path: Path, n_done: int, n_trials: int) -> None:
        super().__init__(
            f"the study in {path} has not finished: {n_done} of {n_trials} trials are done. Resume it, or name another."
        )
