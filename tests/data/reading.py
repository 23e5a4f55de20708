"""Reading of a file that may be damaged, and its outcome."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from damage import seeds

from raysel.config import config_from_dict, load_config
from raysel.core.errors import RayselError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Tasks
from raysel.data.loading import load_dataset

#: Options of `load_dataset` to read a damaged data file with; most often none.
OPTIONS: tuple[dict[str, Any], ...] = (
    *({},) * 4,
    {"groups": "person"},
    {"label": "column6"},
    {"label": "label", "drop": [""]},
    {"label": "label", "delimiter": ";"},
    {"shape": [3, 2]},
    {"modalities": {"a": 4, "b": 2}},
    {"exclude_labels": ["sky"]},
    {"shape": [3, 2], "order": "F"},
    {"classes": ["0", 1], "label": "y"},
    {"exclude_classes": ["dog", 2]},
    {"only": ["hog"], "drop": ["person"]},
)


def _images(path: Path) -> Dataset:
    """Data set of a folder of an image that may be damaged, once in each of two classes."""
    folder = path.parent / "images"
    for name in ("cat", "dog"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "1.png").write_bytes(path.read_bytes())
    return load_dataset(folder)


def _labelled(path: Path) -> Dataset:
    """Data set of ten samples with labels that may be damaged."""
    samples = path.with_name("samples.npy")
    if not samples.exists():
        samples.write_bytes(seeds("npy")[0])
    return load_dataset(samples, labels=path)


def _volumes(path: Path) -> Dataset:
    """Data set of a volume that may be damaged and of one that is not, which is the mask too."""
    good, table = path.parent / "good" / "volume.nii", path.with_suffix(".volumes.csv")
    if not good.exists():
        good.parent.mkdir(exist_ok=True)
        good.write_bytes(seeds("nii")[0])
    table.write_text(f"file,label\n{good},0\n{path},1\n", encoding="utf-8")
    return load_dataset(table, mask=good)


def judge(path: Path, options: dict[str, Any]) -> str:
    """Read a file as raysel does."""
    try:
        if path.suffix == ".yaml":
            config = load_config(path)
            assert config_from_dict(config.to_dict()).hash == config.hash
        else:
            if path.suffix == ".npy":
                labels = path.with_name("labels.txt")
                labels.write_text("cat\ndog\n" * 5, encoding="utf-8")
                options = {**options, "labels": labels}
            match path.suffix:
                case ".nii" | ".gz":
                    data = _volumes(path)
                case ".png":
                    data = _images(path)
                case ".dat":
                    data = _labelled(path)
                case _:
                    data = load_dataset(path, **options)
            assert isinstance(data.layout, Tasks) or np.isfinite(data.X).all()
            assert len(data.y) == len(data.X) == data.n_samples
            assert len(data.feature_names) == data.n_features
            assert data.content_hash
    except RayselError as error:
        return "refused" if str(error) else f"a {type(error).__name__} without words"
    return "taken"
