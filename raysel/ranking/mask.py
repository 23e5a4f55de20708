"""Masks of the selected features in the shape of a sample, as files."""

from __future__ import annotations

import gzip
import importlib
import io
from pathlib import Path

import numpy as np

from raysel.arrays import BoolArray
from raysel.data.layouts import Layout, Tensor
from raysel.errors import ConfigError
from raysel.ranking.feature_ranking import FeatureRanking

NPY, NIFTI = ".npy", ".nii.gz"
_NIFTI_AXES, _NIFTI_SIDE = 7, 32767  # limits of the format NIfTI-1


def selection_mask(ranking: FeatureRanking, layout: Layout) -> BoolArray:
    """Return the mask of the selected features in the shape of a sample.

    Parameters
    ----------
    ranking : FeatureRanking
        Ranking of the features.
    layout : Layout
        Layout of the features.

    Returns
    -------
    ndarray of bool
        Shape of a sample, e.g. (height, width) of an image; (n_features,) for tables, tasks and modalities.

    Examples
    --------
    >>> ranking = FeatureRanking.from_folds(
    ...     [0.0, 3, 2, 1], [[1.0, 2, 3, 4]], feature_names="abcd", fold_names=["outer0"], n_selected=2
    ... )
    >>> selection_mask(ranking, Tensor((2, 2))).tolist()
    [[False, True], [True, False]]
    """
    return ranking.selected.reshape(layout.shape) if isinstance(layout, Tensor) else ranking.selected


def mask_content(path: str | Path, mask: BoolArray) -> bytes:
    """Return the content of a mask's file, in the format that its name asks for.

    Parameters
    ----------
    path : str or Path
        Path of the file, which ends in ``.npy`` (NumPy, boolean) or ``.nii.gz`` (NIfTI-1 with 0 and 1 as bytes and
        the identity as affine: a layout has no position in space). The latter needs nibabel.
    mask : ndarray of bool
        Mask of `selection_mask`.

    Returns
    -------
    bytes
        The same for the same mask.

    Raises
    ------
    ConfigError
        If the name ends otherwise, a NIfTI file cannot hold the shape, or nibabel is not installed.
    """
    name = Path(path).name
    if name.endswith(NPY):
        file = io.BytesIO()
        np.save(file, mask, allow_pickle=False)
        return file.getvalue()
    if not name.endswith(NIFTI):
        raise ConfigError(f"the mask {path} must end in {NPY} or {NIFTI}, which says its format.")
    if not 2 <= mask.ndim <= _NIFTI_AXES or max(mask.shape) > _NIFTI_SIDE:
        raise ConfigError(
            f"a mask of shape {mask.shape} does not fit {NIFTI}, which holds images of 2 to {_NIFTI_AXES} axes of up "
            f"to {_NIFTI_SIDE}; name the file *{NPY}."
        )
    try:
        nibabel = importlib.import_module("nibabel")
    except ImportError as error:
        raise ConfigError(
            f"the mask {path} needs nibabel, which is not installed: pip install 'raysel[neuro]'. Or name it *{NPY}."
        ) from error
    image = nibabel.Nifti1Image(mask.astype(np.uint8), np.eye(4))
    return gzip.compress(image.to_bytes(), mtime=0)
