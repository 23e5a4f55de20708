"""Names of columns, classes and files in messages and in configurations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

#: Words in the name of a column that tells which samples are of one origin.
SUBJECT = re.compile(
    r"(^|[^a-z])(participant|subject|subj|patient|person|individual|proband|donor|animal|mouse|speaker|user|family|twin"
    r"|video|recording|scene|well|plate|groups)s?($|[^a-z])"
)
#: Names shown of a long list.
_SHOWN = 8


def listed(values: Iterable[object]) -> str:
    """Return the first values of a list in words, and how many there are if they are more.

    Parameters
    ----------
    values : iterable of object
        Values, e.g. names of columns.

    Returns
    -------
    str
        Text of one line.

    Examples
    --------
    >>> listed(["a", "", 3]), listed(range(20))
    ("a, '', 3", '0, 1, 2, 3, 4, 5, 6, 7, ... (20 in all)')
    """
    every = [str(value) for value in values]
    shown = [text if text.isprintable() and text else repr(text) for text in every[:_SHOWN]]
    return ", ".join(shown) + (f", ... ({len(every)} in all)" if len(every) > _SHOWN else "")


def plain_name(path: str | Path) -> str:
    """Return the name of a data file without folder and suffix, in the characters that a study's name may have.

    Parameters
    ----------
    path : str or Path
        Data file or folder.

    Returns
    -------
    str
        The name; "study" if nothing of it is left.

    Examples
    --------
    >>> plain_name("data/My table (2).csv"), plain_name("!.csv")
    ('My-table-2', 'study')
    """
    stem = Path(path).expanduser().absolute().stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem)[:80].strip("-._") or "study"


def speaks_of_origin(name: str) -> bool:
    """Return whether a column tells by its name which samples are of one origin, e.g. ``patient_id``.

    Parameters
    ----------
    name : str
        Name of a column.

    Returns
    -------
    bool
        Whether a word of the name is subject, patient or the like.

    Examples
    --------
    >>> speaks_of_origin("PatientID"), speaks_of_origin("impatience")
    (True, False)
    """
    return SUBJECT.search(words_of(name)) is not None


def words_of(name: str) -> str:
    """Return a name in lower case, with the words of CamelCase apart."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip()).lower()


def shown(name: str) -> str:
    """Return a name as it is shown: in quotation marks if it is empty or not printable."""
    return repr(name) if not name or not name.isprintable() else name
