"""Reading of a file that may be damaged, and its outcome."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from raysel.config import config_from_dict, load_config
from raysel.data.layouts import Tasks
from raysel.data.loading import load_dataset
from raysel.errors import RayselError

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
)


def judge(path: Path, options: dict[str, Any]) -> str:
    """Read a file as raysel does.

    Parameters
    ----------
    path : Path
    options : dict
        Of `load_dataset`; a file of ten labels is put beside an .npy file.

    Returns
    -------
    str
        ``"taken"`` or ``"refused"``; whatever else a reader does escapes.
    """
    try:
        if path.suffix == ".yaml":
            config = load_config(path)
            assert config_from_dict(config.to_dict()).hash == config.hash
        else:
            if path.suffix == ".npy":
                labels = path.with_name("labels.txt")
                labels.write_text("cat\ndog\n" * 5, encoding="utf-8")
                options = {**options, "labels": labels}
            data = load_dataset(path, **options)
            assert isinstance(data.layout, Tasks) or np.isfinite(data.X).all()
            assert len(data.y) == len(data.X) == data.n_samples
            assert len(data.feature_names) == data.n_features
            assert data.content_hash
    except RayselError as error:
        return "refused" if str(error) else f"a {type(error).__name__} without words"
    return "taken"
