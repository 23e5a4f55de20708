"""Data sets: their layouts, readers and writers, built-in sets and scaling."""

from raysel.data.builtin import BUILTIN_NAMES
from raysel.data.dataset import Dataset
from raysel.data.files import find_data_file
from raysel.data.layouts import Layout, Matrix, Tensor, layout_from_json
from raysel.data.readers import load_dataset
from raysel.data.scaling import UnitScaler, make_scaler
from raysel.data.synthetic import make_matrix_classification, make_multimodal_classification
from raysel.data.writers import save_dataset

__all__ = [
    "BUILTIN_NAMES",
    "Dataset",
    "Layout",
    "Matrix",
    "Tensor",
    "UnitScaler",
    "find_data_file",
    "layout_from_json",
    "load_dataset",
    "make_matrix_classification",
    "make_multimodal_classification",
    "make_scaler",
    "save_dataset",
]
