"""The errors raysel raises on purpose: one message that names the culprit and the mend."""

from __future__ import annotations


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
