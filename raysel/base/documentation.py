"""What a method's docstring, in numpydoc's form, says of it: summary, parameters and papers."""

from __future__ import annotations

import inspect
import re


def summary(cls: type) -> str:
    """First line of a docstring."""
    return (inspect.getdoc(cls) or "").partition("\n")[0].replace("``", "")


def parameter_texts(cls: type) -> dict[str, tuple[str, str]]:
    """Type and description of each parameter, by its name."""
    entries = re.findall(r"^(\w.*?) : (.*)\n((?:(?:[ ].*)?(?:\n|\Z))*)", _section(cls, "Parameters"), re.MULTILINE)
    texts = {names: (kind, " ".join(text.replace("``", "").split())) for names, kind, text in entries}
    return {name.strip(): told for names, told in texts.items() for name in names.split(",")}


def papers(cls: type) -> str:
    """References of a docstring as one text, without their numbers."""
    return " ".join(re.sub(r"^\.\. \[\d+\]", "", _section(cls, "References"), flags=re.MULTILINE).split())


def _section(cls: type, title: str) -> str:
    found = re.search(
        rf"^{title}\n-+\n(.*?)(?=\n\n\w[\w ]*\n---|\Z)", inspect.getdoc(cls) or "", re.MULTILINE | re.DOTALL
    )
    return f"{found[1]}\n" if found else ""
