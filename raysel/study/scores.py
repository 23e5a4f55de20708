"""The result of a study: each outer fold's winner, the honest estimate and the model's configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raysel.cv.plan import FINAL
from raysel.cv.records import RefitRecord


@dataclass(frozen=True)
class StudyResult:
    """The refits of a study in the order of its folds, the final one last.

    Parameters
    ----------
    refits : sequence of RefitRecord
    metric : str
    """

    refits: Sequence[RefitRecord]
    metric: str

    @property
    def outer(self) -> list[RefitRecord]:
        """The refits that have a test score."""
        return [refit for refit in self.refits if refit.fold != FINAL]

    @property
    def final(self) -> RefitRecord:
        """The model's refit, on all data."""
        return next(refit for refit in self.refits if refit.fold == FINAL)

    @property
    def test(self) -> list[float]:
        """Test score of each outer fold's winner."""
        return [float(np.mean(refit.test_scores)) for refit in self.outer]

    @property
    def inner(self) -> list[float]:
        """Inner score of each outer fold's winner."""
        return [refit.inner_score for refit in self.outer]

    def summary(self) -> dict[str, Any]:
        """Scores by outer fold with their mean and sample standard deviation.

        Returns
        -------
        dict
            ``test_mean``, ``test_std``, ``test`` and ``inner``.
        """
        return {
            "test_mean": float(np.mean(self.test)),
            "test_std": float(np.std(self.test, ddof=1)),
            "test": self.test,
            "inner": self.inner,
        }
