"""Picture of a study's data that a dry run writes."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from raysel.core.errors import DirectoryError
from raysel.core.storage.working_copy import shown_place
from raysel.study.definition import Study

NAME = "preview.png"


def show_preview(study: Study, folder: str | None, out: Console) -> None:
    """Write the picture of a study's data and say where it is, or say how to get it."""
    if folder is None:
        out.print(f"{'picture':<14}add --output DIR to draw the data as they were read into DIR/{NAME}", markup=False)
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DirectoryError(f"{folder} cannot be created: {error.strerror}; choose another directory.") from error
    out.print(f"{'picture':<14}{shown_place(write_preview(study, Path(folder, NAME)))}", markup=False)


def write_preview(study: Study, path: Path) -> Path:
    """Draw the data of a study as they were understood: images of classes and samples, or ranges."""
    from raysel.results.displays.display import write_figure
    from raysel.results.displays.preview_data import DataPreview, preview_orders, preview_parts

    data = study.dataset
    kinds = "labels" if data.is_multilabel else "classes"
    facts = f"{data.n_samples} samples x {data.n_features} features, {len(data.classes)} {kinds}; before scaling."
    parts = preview_parts(data, preview_orders(study.config.to_dict()["dataset"]))
    return write_figure(DataPreview(data.name, parts, facts).headed_figure(), path)
