"""Masks of the selected features in the shape of a sample, as files."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from raysel.arrays import BoolArray, FloatArray
from raysel.data.formats.volumes import nifti_content
from raysel.data.layouts import Layout, MaskedVolume, Tensor
from raysel.errors import ConfigError
from raysel.files import write_result
from raysel.ranking.feature_ranking import FeatureRanking

NPY, NIFTI = ".npy", ".nii.gz"


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
        Shape of a sample, e.g. (height, width) of an image or (a, b, c) of a masked volume; (n_features,) for tables,
        tasks and modalities.

    Examples
    --------
    >>> ranking = FeatureRanking.from_folds(
    ...     [0.0, 3, 2, 1], [[1.0, 2, 3, 4]], feature_names="abcd", fold_names=["outer0"], n_selected=2
    ... )
    >>> selection_mask(ranking, Tensor((2, 2))).tolist()
    [[False, True], [True, False]]
    """
    return layout.arranged(ranking.selected) if isinstance(layout, Tensor | MaskedVolume) else ranking.selected


def write_maps(ranking: FeatureRanking, layout: MaskedVolume, folder: str | Path) -> tuple[Path, ...]:
    """Write the scores and the selected features of a masked volume as NIfTI files with the mask's affine.

    Parameters
    ----------
    ranking : FeatureRanking
        Ranking of the features.
    layout : MaskedVolume
        Layout of the features.
    folder : str or Path
        Existing folder to write to.

    Returns
    -------
    tuple of Path
        ``scores.nii.gz``, in single precision, and ``selected.nii.gz``, of 0 and 1; both are 0 outside the mask.

    Raises
    ------
    ConfigError
        If nibabel is not installed, or NIfTI cannot hold the shape.
    StudyError
        If a file cannot be written.
    """
    scores = layout.arranged(ranking.usable_scores.astype(np.float32))
    maps = {"scores": scores, "selected": selection_mask(ranking, layout)}
    paths = [Path(folder, f"{name}{NIFTI}") for name in maps]
    contents = [nifti_content(values, layout.affine, path) for path, values in zip(paths, maps.values(), strict=True)]
    return tuple(write_result(path, content) for path, content in zip(paths, contents, strict=True))


def mask_content(path: str | Path, mask: BoolArray, affine: FloatArray | None = None) -> bytes:
    """Return the content of a mask's file, in the format that its name asks for.

    Parameters
    ----------
    path : str or Path
        Path of the file, which ends in ``.npy`` (NumPy, boolean) or ``.nii.gz`` (NIfTI-1 with 0 and 1 as bytes). The
        latter needs nibabel.
    mask : ndarray of bool
        Mask of `selection_mask`.
    affine : ndarray of shape (4, 4), optional
        Affine of the NIfTI file, that of a masked volume. By default the identity: other layouts have no position in
        space.

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
    try:
        return nifti_content(mask, affine, path)
    except ConfigError as error:
        raise ConfigError(f"{error} Or name the file *{NPY}.") from error
