"""Locks that exclude processes of this machine and of others that share its files."""

from raysel.tracking.locks.file_lock import FileLock, LockHeldError, is_locked
from raysel.tracking.locks.locked_file import LockedFile
from raysel.tracking.locks.schema import schema_lock

__all__ = ["FileLock", "LockHeldError", "LockedFile", "is_locked", "schema_lock"]
