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
    """Return the mask of the selected features in the shape of a sample."""
    return layout.arranged(ranking.selected) if isinstance(layout, Tensor | MaskedVolume) else ranking.selected


def write_maps(ranking: FeatureRanking, layout: MaskedVolume, folder: str | Path) -> tuple[Path, ...]:
    """Write the scores and the selected features of a masked volume as NIfTI files with the mask's affine."""
    scores = layout.arranged(ranking.usable_scores.astype(np.float32))
    maps = {"scores": scores, "selected": selection_mask(ranking, layout)}
    paths = [Path(folder, f"{name}{NIFTI}") for name in maps]
    contents = [nifti_content(values, layout.affine, path) for path, values in zip(paths, maps.values(), strict=True)]
    return tuple(write_result(path, content) for path, content in zip(paths, contents, strict=True))


def mask_content(path: str | Path, mask: BoolArray, affine: FloatArray | None = None) -> bytes:
    """Return the content of a mask's file, in the format that its name asks for. `affine` is (4, 4)."""
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
