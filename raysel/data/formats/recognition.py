"""Recognition of labels, groups, identifiers and indices by names and values of columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raysel.core.arrays import LabelArray
from raysel.core.printing import listed

#: Names, in any case, of the column of a table that is taken for the labels where none is named.
TAKEN = ("y", "label", "target", "class")
#: Names of the array of labels where none is named: the first of these that a file has ...
ARRAYS = ("y", "Y", "gnd")
#: ... or else one of these, in any case.
FURTHER_ARRAYS = ("label", "labels", "target", "targets", "class", "classes")
#: Names of columns that are proposed only: a column of such a name may as well be a feature.
PROPOSED = (
    *(
        "labels",
        "targets",
        "classes",
        "diagnosis",
        "species",
        "outcome",
        "class_label",
        "class_name",
        "category",
    ),
    *(
        "disease",
        "phenotype",
        "cultivar",
        "variety",
        "cell_type",
        "tumor_type",
        "cancer_type",
        "subtype",
        "response",
    ),
    *(
        "group",
        "condition",
        "status",
        "type",
        "kind",
        "result",
        "quality",
        "survived",
        "emotion",
        "activity",
        "digit",
    ),
    *("grade", "stage", "treatment", "arm", "cohort", "fraud", "churn", "sentiment"),
    *(
        "klasse",
        "diagnose",
        "art",
        "sorte",
        "gruppe",
        "kategorie",
        "typ",
        "ergebnis",
        "befund",
        "zielvariable",
    ),
    *(
        "classe",
        "diagnostic",
        "espèce",
        "espece",
        "groupe",
        "catégorie",
        "categorie",
        "résultat",
        "étiquette",
    ),
    *(
        "clase",
        "diagnóstico",
        "diagnostico",
        "especie",
        "grupo",
        "categoría",
        "resultado",
        "etiqueta",
    ),
)

#: Prefix of the columns of an indicator, e.g. y.grass and y.sky.
INDICATOR = "y."
#: Columns in which pandas stores an index without a name.
PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_UNNAMED = re.compile(rf"\s*|Unnamed: \d+(\.\d+)*|{PANDAS_INDEX.pattern}")

#: Words of the names of columns that tell which samples are of one origin.
_ORIGIN = frozenset(
    (
        *(
            "subject",
            "subj",
            "patient",
            "participant",
            "person",
            "individual",
            "volunteer",
            "proband",
            "donor",
        ),
        *(
            "animal",
            "mouse",
            "family",
            "household",
            "twin",
            "speaker",
            "writer",
            "user",
            "video",
            "recording",
        ),
        *("scene", "well", "plate", "groups"),
    )
)
#: Words of the names of columns that tell in which order, where or how a sample was measured.
_CIRCUMSTANCE = frozenset(
    (
        *(
            "session",
            "trial",
            "run",
            "block",
            "visit",
            "epoch",
            "batch",
            "site",
            "scanner",
            "center",
            "centre",
        ),
        *("fold", "split", "index", "row", "name"),
    )
)
#: Those of them, and of origins, that tell which samples were measured together.
_TOGETHER = frozenset(
    (
        "session",
        "run",
        "block",
        "batch",
        "site",
        "scanner",
        "center",
        "centre",
        "plate",
        "lane",
        "chip",
        "hospital",
        "lab",
    )
)
#: Words of the names of columns that tell when a sample was measured.
_TIME = frozenset(("timestamp", "datetime", "date"))
#: Words that make a name one of identifiers, and words that do so only beside each other or those
#: of origins.
_IDENTIFIER = frozenset(
    ("id", "idx", "uid", "uuid", "guid", "accession", "barcode", "filename", "rownames", "serial")
)
_NUMBER = frozenset(
    ("nr", "no", "num", "number", "code", "index", "key", "name", "file", "path", "row", "record")
)
#: Words of these kinds, which stay as they are.
_OF_SAMPLES = _ORIGIN | _IDENTIFIER | _NUMBER
#: Places between the words of a name such as PatientID or IDNumber, and a word or a number.
_BETWEEN = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_DIGITS = re.compile(r"\d+")
#: Words that say of what a weight is, so that it is that of a sample, and names that are weights
#: alone.
_WEIGHTED = frozenset(
    (
        *("sample", "case", "survey", "observation", "ob", "sampling", "design", "instance"),
        *("person", "respondent", "frequency", "freq", "probability", "row", "final", "replicate"),
        "inverse",
    )
)
_WEIGHTS = frozenset(("weights", "wts", "wgt", "fnlwgt", "pweight", "pweights", "finalwt", "ipw"))
#: Place of which a word is an axis, and the number of the axis; and words that may stand beside
#: them in the name of a column.
_AXIS_OF = {
    "row": (0, 0),
    **dict.fromkeys(("col", "column"), (0, 1)),
    **dict(zip("xyz", ((1, 0), (1, 1), (1, 2)), strict=True)),
    **dict(zip("ijk", ((2, 0), (2, 1), (2, 2)), strict=True)),
    **dict.fromkeys(("lat", "latitude"), (3, 0)),
    **dict.fromkeys(("lon", "long", "lng", "longitude"), (3, 1)),
    **dict.fromkeys(("northing", "north", "n"), (4, 0)),
    **dict.fromkeys(("easting", "east", "e"), (4, 1)),
}
#: Names that are those of one axis of a place, whatever others there are.
_ONE_AXIS = frozenset(
    ("row", "col", "column", "lat", "latitude", "lon", "lng", "longitude", "northing", "easting")
)
#: More distinct numbers than this are a measurement, not classes, unless the column's name says so.
_MOST_NUMBERS = 20
#: Fewest samples, most texts a class, and least share of each class that they tell, where text is
#: the label in words.
_FEWEST_SAMPLES, _TEXTS_OF_CLASS, _SHARE = 20, 3, 0.95
#: Largest share of the cells that are text by mistake in a column of numbers, and most of their
#: texts that are named.
_FEW_TEXTS, _NAMED = 0.1, 3
#: Most texts that stand for values without a number, e.g. "n.d.", beside more different numbers
#: than these.
_MARKS, _MANY_NUMBERS = 3, 10
#: Signs with which values beyond a limit begin, e.g. "<LOD" and ">200".
_BEYOND = ("<", ">", "≤", "≥")
#: A column whose first values are this many different fractions is a measurement.
_FIRST_ROWS = 256


def taken_names(names: Collection[str]) -> list[str]:
    """Return the columns called y, label, target or class, in any case."""
    return [name for name in names if name.strip().lower() in TAKEN]


def label_arrays(names: Collection[str]) -> list[str]:
    """Return the arrays that may be the labels by their name alone."""
    return [name for name in ARRAYS if name in names][:1] or [
        name for name in names if name.lower() in FURTHER_ARRAYS
    ]


def has_label_name(name: str) -> bool:
    """Return whether an array may be the labels by its name, whatever other arrays there are."""
    return name.lower() in (*ARRAYS, *FURTHER_ARRAYS)


def rank_label_name(name: str) -> int | None:
    """Return how usual a name is for labels, 0 for the most usual; None for other names."""
    plain = re.sub(r"[\s.-]+", "_", name.strip().lower())
    names = (*TAKEN, *PROPOSED)
    if plain in names:
        return names.index(plain)
    return None


def is_unnamed(name: str) -> bool:
    """Return whether a column has no name of its own, or the one that pandas gives an index."""
    return _UNNAMED.fullmatch(name) is not None


def names_origin(name: str) -> bool:
    """Return whether a name tells which samples are of one origin, e.g. of one patient.

    All words of the name, or those behind its last full stop, are words of origins, identifiers or
    numbers.
    """
    return any(words & _ORIGIN and words <= _OF_SAMPLES for words in _words(name))


def names_identifier(name: str) -> bool:
    """Return whether a column may tell each sample from all others by its name."""
    return any(
        words & _IDENTIFIER or (words and words <= _ORIGIN | _NUMBER) for words in _words(name)
    )


def names_circumstance(name: str) -> bool:
    """Return whether a name may tell how a sample was measured, and no property of it."""
    return any(words & _CIRCUMSTANCE for words in _words(name))


def names_batch(name: str) -> bool:
    """Return whether a name may tell which samples were measured together, e.g. a batch."""
    return names_origin(name) or any(words & _TOGETHER for words in _words(name))


def names_time(name: str) -> bool:
    """Return whether a name tells when a sample was measured, e.g. ``scan_date``, not how long."""
    return any(words & _TIME for words in _words(name))


@lru_cache(maxsize=2**15)  # all names of a table are asked for one kind of words after another
def _words(name: str) -> tuple[frozenset[str], ...]:
    """Words of a name, and those behind its last full stop, in lower case and singular.

    Each number is 0: no known word is one, and so the words of g1, g2, ... are found once.
    """
    return _split_words(_DIGITS.sub("0", name))


@lru_cache(maxsize=2**10)
def _split_words(name: str) -> tuple[frozenset[str], ...]:
    apart = _BETWEEN.sub("_", name).lower()
    words = frozenset(map(_singular, _WORD.findall(apart)))
    if "." not in apart:
        return (words,)
    return words, frozenset(map(_singular, _WORD.findall(apart.rpartition(".")[2])))


def _singular(word: str) -> str:
    if word in _OF_SAMPLES:
        return word
    return word.removesuffix("s")


def names_weight(name: str) -> bool:
    """Return whether a column may say how much each sample counts, e.g. ``sample_weight``."""
    if name.strip().lower() in _WEIGHTS:
        return True
    words = _words(name)[0]
    weight = words & {"weight", "wt", "wgt"}
    return bool(weight) and words > weight and words - weight <= _WEIGHTED


_OF_PLACE = frozenset(
    map(
        _singular,
        (
            *("coord", "coordinate", "position", "pos", "location", "loc", "place", "spatial"),
            *("well", "plate", "spot", "tile", "fov", "pixel", "px", "pxl", "voxel"),
            *("image", "img"),
            *("map", "grid", "cell", "array"),
            *("in", "fullres", "centroid", "center", "centre", "geo", "utm", "gps", "wgs"),
            *("deg", "degree", "km", "m", "mm", "um", "micron", "index", "idx", "nr", "no"),
        ),
    )
)


def places(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the columns that together tell where a sample was measured, e.g. ``row``, ``col``.

    Each name has a word of another axis; further words are the same, and words of places.
    """
    found: dict[tuple[int, frozenset[str]], dict[int, str]] = {}
    for name in names:
        words = _words(name)[0]
        along = words & _AXIS_OF.keys()
        if len(along) == 1 and words - along <= _OF_PLACE:
            kind, number = _AXIS_OF[next(iter(along))]
            found.setdefault((kind, words - along), {}).setdefault(number, name)
    several = (sorted(axes.items()) for axes in found.values() if len(axes) > 1)
    return [tuple(name for _, name in axes) for axes in several]


def find_place_names(names: Iterable[str]) -> list[str]:
    """Return the columns that may tell where a sample was measured, also by one axis."""
    every = list(names)
    together = {*chain.from_iterable(places(every))}
    return [name for name in every if name in together or _names_axis(name)]


def _names_axis(name: str) -> bool:
    words = _words(name)[0]
    return bool(words) and words <= _ONE_AXIS


def value_type(kind: Any) -> Any:
    """Return the type of the values, of categories that of the words."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return kind


def is_text(kind: Any) -> bool:
    """Return whether values of a type, or categories, are text."""
    kind = value_type(kind)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def is_number(kind: Any) -> bool:
    """Return whether values of a type are numbers."""
    types = pa.types
    whole = types.is_integer(kind) or types.is_boolean(kind)
    return whole or types.is_floating(kind) or types.is_decimal(kind)


def reads_as_number(value: object) -> bool:
    """Return whether Python reads a value as a number."""
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def odd_cells(counts: Mapping[str, int], n_cells: int, more_than: int = 0) -> str:
    """Name the texts that are no numbers in a column of numbers, with counts; empty without.

    `counts` has the number of cells of each text. It is a column of numbers if nearly all cells
    are, or if few texts stand beside many numbers and values beyond a limit, e.g. "<LOD"; and if it
    has more different numbers than ``more_than``.
    """
    odd = [text for text in counts if not reads_as_number(text.replace(",", "."))]
    n_odd, n_numbers = sum(counts[text] for text in odd), len(counts) - len(odd)
    few_cells = n_odd <= _FEW_TEXTS * sum(counts.values())
    few_texts = sum(not text.strip().startswith(_BEYOND) for text in odd) <= _MARKS
    marks = few_texts and n_numbers > _MANY_NUMBERS
    if not odd or not (few_cells or marks) or n_numbers <= more_than:
        return ""
    return f"{listed(map(repr, odd), _NAMED)} in {n_odd} of {n_cells} cells"


def decoded(column: Any) -> Any:
    """Return a column with its categories written out."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


def numbered_texts(column: Any) -> tuple[list[str | None], LabelArray]:
    """Return a column's different texts, None if cells are empty, and each cell's position.

    A column may have millions of cells, each of which would be an object of Python, and few texts.
    """
    texts = decoded(column).cast(pa.large_string())
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    encoded = texts.dictionary_encode("encode")
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices)


def counted_texts(column: Any) -> dict[str, int]:
    """Return the number of cells of each text of a column that is not empty."""
    texts, positions = numbered_texts(column)
    counts = np.bincount(positions, minlength=len(texts)).tolist()
    return {text: n for text, n in zip(texts, counts, strict=True) if text}


def codes(column: Any) -> LabelArray | None:
    """Number of each row's value; None for fractions, empty cells and other types."""
    column = decoded(column)
    if column.null_count:
        return None
    if pa.types.is_floating(column.type):
        values = column.to_numpy()
        with np.errstate(invalid="ignore"):
            if np.array_equal(values, np.floor(values)):
                return values.astype(np.int64)
            return None
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        return np.asarray(column.to_numpy())
    if is_text(column.type):
        return numbered_texts(column)[1]
    return None


def likely_labels(table: Any) -> list[str]:
    """Columns of a table that may hold the labels, the most likely first.

    A column is proposed if it has at least two values and, on average, at least two rows of each;
    numbers must be whole, and of at most 20 values unless the column's name is one of labels.
    """
    likely = []
    last = table.num_columns - 1
    for position, name in enumerate(table.column_names):
        usual = rank_label_name(name)
        column = decoded(table.column(position))
        n_values = _count_classes(column, named=usual is not None)
        if n_values is None:
            continue
        if usual is not None:
            place, aside = (0, False), False
        else:
            place = (1, False) if is_text(column.type) else (2, position not in (0, last))
            aside = names_identifier(name) or names_origin(name) or names_circumstance(name)
        likely.append(((aside, *place, usual or 0, n_values, last - position), name))
    return [name for _, name in sorted(likely)]


def _count_classes(column: Any, *, named: bool) -> int | None:
    """Number of distinct values of a column that could hold classes, else None."""
    kind = column.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not (numeric or is_text(kind) or pa.types.is_boolean(kind)):
        return None
    most = len(column) // 2
    if pa.types.is_floating(kind) and _has_fractions(column.slice(0, _FIRST_ROWS)):
        return None
    if numeric and not named:
        most = min(most, _MOST_NUMBERS)
        if pc.count_distinct(column.slice(0, _FIRST_ROWS)).as_py() > most:
            return None
    n_values: int = pc.count_distinct(column).as_py()
    if not 2 <= n_values <= most:
        return None
    if pa.types.is_floating(kind) and _has_fractions(column):
        return None
    return n_values


def _has_fractions(column: Any) -> bool:
    """Return whether a column of floats holds a number that is not whole."""
    values = column.to_numpy()
    return bool((values != np.floor(values))[~np.isnan(values)].any())


def is_in_other_words(values: LabelArray, y: LabelArray) -> bool:
    """Return whether few texts, each of one class but for 5 % of samples, mean the labels."""
    if y.ndim == 2 or len(y) < _FEWEST_SAMPLES:
        return False
    texts, code = np.unique(values, return_inverse=True)
    classes, label = np.unique(y, return_inverse=True)
    if len(texts) > min(_TEXTS_OF_CLASS * len(classes), len(y) // 2):
        return False
    counts = np.zeros((len(texts), len(classes)), dtype=np.int64)
    np.add.at(counts, (code, label), 1)
    right = counts.argmax(axis=1)[code] == label
    return all(right[label == i].mean() >= _SHARE for i in range(len(classes)))
