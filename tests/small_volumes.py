"""Tables of NIfTI files of generated volumes, with a mask and a planted region where two classes
differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

SHAPE = (8, 9, 7)


@dataclass(frozen=True)
class Volumes:
    """Files of a data set of volumes, and what they were made of."""

    table: Path
    mask_file: Path
    values: np.ndarray  # (n, *SHAPE)
    mask: np.ndarray
    region: np.ndarray
    affine: np.ndarray
    y: np.ndarray

    @property
    def dataset(self) -> dict[str, str]:
        """Section `dataset` of a study."""
        return {
            "source": "nifti",
            "path": str(self.table),
            "mask": str(self.mask_file),
            "label": "diagnosis",
        }


def random_affine(rng: np.random.Generator) -> np.ndarray:
    """An oblique affine with voxels of 2 to 3 mm."""
    affine = np.eye(4)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    affine[:3, :3] = turn @ np.diag([2.0, 2.5, 3.0])
    affine[:3, 3] = rng.normal(0, 50, 3)
    return affine.astype(np.float32).astype(float)


def write_volumes(folder: Path, n: int = 24, seed: int = 0) -> Volumes:
    """Smooth noise of unit variance in an ellipsoid; in a ball inside it the second class is
    larger by 3.
    """
    import nibabel  # noqa: PLC0415 - tests are skipped without it

    rng = np.random.default_rng(seed)
    affine, places = random_affine(rng), np.stack(np.indices(SHAPE), -1)
    middle = (np.array(SHAPE) - 1) / 2
    mask = (((places - middle) / (np.array(SHAPE) / 2)) ** 2).sum(-1) < 1
    region = (np.linalg.norm(places - middle - [-1, 1, 0], axis=-1) < 1.6) & mask
    y = np.array(["control", "patient"])[np.arange(n) % 2]
    noise = np.stack([gaussian_filter(rng.normal(size=SHAPE), 0.7) for _ in range(n)])
    values = (
        100 + noise / noise.std() + 3 * (region & (y == "patient")[:, None, None, None])
    ).astype(np.float32)
    lines = ["scan,age,diagnosis,site"]
    (folder / "scans").mkdir(parents=True)
    for i, volume in enumerate(values):
        nibabel.save(nibabel.Nifti1Image(volume, affine), folder / "scans" / f"{i}.nii.gz")
        lines.append(f"scans/{i}.nii.gz,{30 + i},{y[i]},{i // 2}")
    mask_file, table = folder / "mask.nii.gz", folder / "scans.csv"
    nibabel.save(nibabel.Nifti1Image(mask.astype(np.uint8), affine), mask_file)
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Volumes(table, mask_file, values, mask, region, affine, y)
