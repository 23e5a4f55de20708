"""Method and task that end the worker process in which they run; workers import them from here."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from sklearn.linear_model import LogisticRegression


def kill_this_worker(driver: int, once: Path | None) -> None:
    """End a worker process by SIGKILL, once where a file marks that it was done, and never the
    driver.
    """
    if os.getpid() == driver or (once is not None and once.exists()):
        return
    if once is not None:
        once.touch()
    os.kill(os.getpid(), signal.SIGKILL)


class Killed(LogisticRegression):
    """Classifier whose fits with `fate` end the worker process, once where it names a file."""

    def __init__(self, C: float = 1.0, fate: str = "", driver: int = 0) -> None:
        super().__init__(C=C, max_iter=20)
        self.fate, self.driver = fate, driver

    def fit(self, X, y, sample_weight=None):
        if self.fate:
            kill_this_worker(self.driver, None if self.fate == "always" else Path(self.fate))
        return super().fit(X, y, sample_weight)


def die_of(number: int, driver: int, once: Path | None, _: object, argument: int) -> int:
    if argument == number:
        kill_this_worker(driver, once)
    return argument**2
