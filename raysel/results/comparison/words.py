"""Text of a comparison: its tables as strings, the footnotes of their figures, and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.core.printing import escaped
from raysel.results.comparison.result import ComparisonResult
from raysel.results.comparison.rows import MemberRow, Pair
from raysel.results.remarks import few_folds_remarks
from raysel.results.texts import format_remark

_NONE = "-"
_NO_RESULT = "no result"


@dataclass(frozen=True)
class TextTable:
    """A table of strings."""

    title: str
    header: list[str]
    rows: list[list[str]]

    def is_number(self, column: int) -> bool:
        """Return whether the cells of a column start with figures, so that they are aligned on the right."""
        cells = [row[column] for row in self.rows if row[column] not in ("", _NONE)]
        figures = [cell for cell in cells if cell[0] in "0123456789+-<"]
        return column > 0 and bool(figures) and all(c in figures or c.startswith((_NO_RESULT, _NONE)) for c in cells)

    def markdown(self) -> str:
        """Return the table in Markdown, its title above it."""
        rules = ["---:" if self.is_number(i) else "---" for i in range(len(self.header))]
        lines = [self.header, rules, *self.rows]
        cells = ["| " + " | ".join(map(in_markdown, line)) + " |" for line in lines]
        return "\n".join([f"**{in_markdown(self.title)}**", "", *cells])


@dataclass(frozen=True)
class ComparisonText:
    """Tables and sentences of a comparison."""

    title: str
    tables: list[TextTable]
    notes: list[str]
    remarks: list[str]

    def markdown(self) -> str:
        """Return the text in Markdown."""
        parts = [f"# {in_markdown(self.title)}"]
        for table in self.tables:
            parts.append(table.markdown())
            if table is self.tables[0] and self.notes:
                parts.append("  \n".join(map(in_markdown, self.notes)))
        parts.append("\n".join(f"- {in_markdown(remark)}" for remark in self.remarks))
        return "\n\n".join(part for part in parts if part) + "\n"


@dataclass
class _Notes:
    """Footnotes, numbered in the order of their first use."""

    numbers: dict[str, int] = field(default_factory=dict)

    def mark(self, notes: Iterable[str]) -> str:
        """Return the marks of some footnotes, e.g. ``" [1, 3]"``; empty if there are none."""
        found = [self.numbers.setdefault(note, len(self.numbers) + 1) for note in notes]
        return f" [{', '.join(map(str, found))}]" if found else ""

    def lines(self) -> list[str]:
        return [f"[{number}] {note}." for note, number in self.numbers.items()]


def comparison_text(comparison: ComparisonResult) -> ComparisonText:
    """Return the tables of a comparison as strings, with their footnotes and remarks."""
    rows, pairs = comparison.rows, comparison.pairs
    notes = _Notes()
    tables = [_score_table(comparison, rows, notes)]
    if any(row.by_task for row in rows.values()):
        tables.append(_task_table(comparison, rows))
    if (curves := _curve_table(comparison, rows)) is not None:
        tables.append(curves)
    if pairs:
        tables.append(_difference_table(comparison, pairs))
    if rows:
        tables.append(_settings_table(comparison, rows))
    folds = f" on the same {comparison.folds.describe()}" if comparison.folds else ""
    title = f"{comparison.name}: {len(comparison.members)} methods{folds}"
    return ComparisonText(title, tables, notes.lines(), list(_remarks(comparison, rows, pairs)))


def _score_table(comparison: ComparisonResult, rows: Mapping[str, MemberRow], notes: _Notes) -> TextTable:
    reported = list(dict.fromkeys(name for row in rows.values() for name in row.report))
    shows_red = any(row.redundancy is not None for row in rows.values())
    shows_stability = any(row.stability is not None for row in rows.values())
    shows_n = any(row.n_features for row in rows.values())
    header = ["method", f"test {comparison.metric or 'score'}", *(["features"] if shows_n else []), *reported]
    header += [*(["RED"] if shows_red else []), *(["stability"] if shows_stability else [])]
    header += ["configurations tried", "CPU s a fit"]
    lines = []
    for member in comparison.members:
        row = rows.get(member.label)
        if row is None:
            lines.append(
                [member.label, _NO_RESULT + notes.mark([member.failure.rstrip(".")]), *[""] * (len(header) - 2)]
            )
            continue
        cells = [member.label + notes.mark(row.notes["member"])]
        cells.append(mean_and_spread(row.scores) + notes.mark(row.notes["test"]))
        cells += [_chosen(row)] if shows_n else []
        cells += [
            mean_and_spread(row.report[name]) + notes.mark(row.notes.get(name, [])) if name in row.report else _NONE
            for name in reported
        ]
        if shows_red:
            cells.append(_NONE if row.redundancy is None else f"{row.redundancy:.3f}")
        if shows_stability:
            cells.append(_stability(row, notes))
        low, high = row.n_tried
        cells.append((f"{low}" if low == high else f"{low}-{high}") + notes.mark(row.notes["tried"]))
        cells.append(_NONE if row.cpu_seconds is None else _seconds(row.cpu_seconds))
        lines.append(cells)
    return TextTable(f"Test scores, mean ± SD over the {_runs(comparison)}", header, lines)


def _task_table(comparison: ComparisonResult, rows: Mapping[str, MemberRow]) -> TextTable:
    tasks = list(dict.fromkeys(task for row in rows.values() for task in row.by_task))
    lines = [
        [label, *(mean_and_spread(row.by_task[task]) if task in row.by_task else _NONE for task in tasks)]
        for label, row in rows.items()
    ]
    return TextTable(
        f"Test {comparison.metric} of each task, mean ± SD over the {_runs(comparison)}", ["method", *tasks], lines
    )


def _curve_table(comparison: ComparisonResult, rows: Mapping[str, MemberRow]) -> TextTable | None:
    """Scores at each number of features that all members with such numbers have in common; None below two of each."""
    scored = {label: row for label, row in rows.items() if row.n_features}
    common = sorted(set.intersection(*(set(row.n_features) for row in scored.values()))) if scored else []
    if len(scored) < 2 or len(common) < 2:
        return None
    by_n = {label: dict(zip(row.n_features, row.by_label.values(), strict=True)) for label, row in scored.items()}
    lines = [[label, *(mean_and_spread(own[n]) for n in common)] for label, own in by_n.items()]
    title = f"Test scores at each common number of best features, mean ± SD over the {_runs(comparison)}"
    return TextTable(title, ["method", *map(str, common)], lines)


def _runs(comparison: ComparisonResult) -> str:
    return "draws" if comparison.folds and comparison.folds.are_draws else "outer folds"


def _chosen(row: MemberRow) -> str:
    """Numbers of features that the score is of: ``16``, ``8-16``, or ``mean`` over all that were scored."""
    if not row.chosen:
        return "mean" if row.n_features else _NONE
    low, high = min(row.chosen), max(row.chosen)
    return f"{low}" if low == high else f"{low}-{high}"


def _stability(row: MemberRow, notes: _Notes) -> str:
    if row.stability is None:
        return _NONE
    if row.stability.reason:
        return _NONE + notes.mark([f"the stability is undefined: {row.stability.reason}"])
    return f"{row.stability.value:.2f}{'' if row.noise is None else f' ({row.noise.mean:.2f})'}"


def _difference_table(comparison: ComparisonResult, pairs: Mapping[str, Pair]) -> TextTable:
    main = next(iter(pairs.values())).main
    beside = "corrected" if main == "plain" else "plain"
    header = ["method", "difference [95 % interval]", "SD", f"p ({main})", f"p ({beside})", "won/tied/lost"]
    lines = []
    for label, pair in pairs.items():
        found, test = pair.compared, pair.test
        runs = f"{found.won}/{found.tied}/{found.lost}"
        if test is None:
            difference = f"{found.mean:+z.3f} (no test: {found.reason})"
            lines.append([label, difference, f"{found.sd:.3f}", _NONE, _NONE, runs])
            continue
        interval = f"{found.mean:+z.3f} [{test.lower:+z.3f}, {test.upper:+z.3f}]"
        p = {"plain": pair.p_plain, "corrected": pair.p_corrected}
        lines.append([label, interval, f"{found.sd:.3f}", p_in_words(p[main]), p_in_words(p[beside]), runs])
    return TextTable(f"Difference to the reference, {comparison.reference}: mean, SD and runs won", header, lines)


def _settings_table(comparison: ComparisonResult, rows: Mapping[str, MemberRow]) -> TextTable:
    data = {label: comparison.studies[label].config["dataset"] for label in rows}
    scalings = {own.get("scaling", _NONE) for own in data.values()}
    has_only = any(own.get("only") for own in data.values())
    header = ["method", "solver", "fixed parameters", *(["modalities"] if has_only else [])]
    header += [*(["scaling"] if len(scalings) > 1 else []), "most frequent winner (folds)"]
    lines = []
    for member in comparison.finished:
        config, row, own = comparison.studies[member.label].config, rows[member.label], data[member.label]
        fixed = ", ".join(f"{name}={value}" for name, value in config["solver"].get("params", {}).items())
        name, count = row.winner
        cells = [member.label, member.solver, fixed or _NONE]
        cells += [", ".join(own.get("only") or ["all"])] if has_only else []
        cells += [own.get("scaling", _NONE)] if len(scalings) > 1 else []
        lines.append([*cells, f"{name} ({count} of {len(row.scores)})"])
    title = "Settings" if len(scalings) > 1 else f"Settings; scaling of all methods: {scalings.pop()}"
    return TextTable(title, header, lines)


def _remarks(comparison: ComparisonResult, rows: Mapping[str, MemberRow], pairs: Mapping[str, Pair]) -> Iterator[str]:
    """Sentences on how the figures are to be read."""
    for text, labels in _grouped((_scoring(comparison, label), label) for label in rows).items():
        yield f"Scores of {_listed(labels, rows)}: {text}."
    tops = [(row.top, label) for label, row in rows.items() if row.top is not None]
    if tops:
        has_red = any(row.redundancy is not None for row in rows.values())
        what = "Stability (Nogueira: 1 for the same features on all outer folds; in brackets that of permuted labels)"
        if has_red:
            what = f"RED (redundancy: mean absolute correlation of two features) and {what[0].lower()}{what[1:]}"
        parts = [f"of the top {top} features ({_listed(own, rows)})" for top, own in _grouped(tops).items()]
        fixed = "The number is the middle one of evaluation.n_features, or a tenth of all; not what each study chose"
        yield f"{what}: {'; '.join(parts)}. {fixed}."
    if any(row.cpu_seconds is not None for row in rows.values()):
        yield (
            "CPU s a fit: CPU seconds of the winner's fit on the outer training set, without its search; median over "
            "the outer folds."
        )
    if pairs:
        yield from _test_remarks(comparison, pairs)
    elif comparison.reference not in rows and rows:
        yield f"There are no differences and no tests: the reference, {comparison.reference}, has no result."


def _test_remarks(comparison: ComparisonResult, pairs: Mapping[str, Pair]) -> Iterator[str]:
    folds = comparison.folds
    if folds is None:
        return
    n_tests = sum(pair.test is not None for pair in pairs.values())
    if not n_tests:
        return
    ratio = f"n_test/n_train = {folds.ratio:.3g}"
    if folds.are_draws:
        yield (
            f"Interval and main p value: plain paired t-test over {folds.describe_number()}. It holds for "
            "these samples only: it takes them as the whole population."
        )
        power = ": at 1 and above, it has next to no power" if folds.ratio >= 1 else ""
        yield f"Beside it: corrected resampled t-test (Nadeau & Bengio), {ratio}{power}."
    else:
        yield (
            f"Interval and main p value: corrected resampled t-test (Nadeau & Bengio) over {folds.describe_number()}, "
            f"{ratio}, because their training sets overlap."
        )
        caution = "; its p is far too small, because the folds are repeated" if folds.are_repeated else ""
        yield f"Beside it: plain paired t-test, which takes the folds as independent{caution}."
    tests = (pair.test for pair in pairs.values())
    n_folds = len(next(iter(pairs.values())).compared.differences)
    yield from map(format_remark, few_folds_remarks(tests, n_folds, of_draws=folds.are_draws))
    if n_tests > 1:
        yield (
            f"All p values are after Holm's correction for {n_tests} tests; tests.csv has them without it too. The "
            "intervals are not adjusted."
        )


def _scoring(comparison: ComparisonResult, label: str) -> str:
    study = comparison.studies[label]
    evaluation = study.config["evaluation"]
    if evaluation["classifier"] == "native":
        tasks = len(study.stored.study.labels)
        return "the model's own predictions" + (f", mean over {tasks} tasks" if tasks else "")
    numbers = list(evaluation["n_features"])
    classifier = evaluation["classifier"]
    if classifier == "knn":
        k = evaluation["n_neighbors"]
        classifier = "knn (1 neighbour)" if k == 1 else f"knn ({k} neighbours)"
    if len(numbers) == 1:
        return f"{classifier} on the top {numbers[0]} features"
    listed = ", ".join(map(str, numbers))
    rule = study.stored.study.choose_n
    if rule == "mean":
        return f"{classifier} on the top n features, mean over n = {listed}"
    chosen = "the smallest within one standard error of the best" if rule == "one_se" else "the best"
    return f"{classifier} on the top n features, n = {chosen} of {listed} by the inner scores of each outer fold"


def _grouped(pairs: Iterable[tuple[object, str]]) -> dict[object, list[str]]:
    found: dict[object, list[str]] = {}
    for key, label in pairs:
        found.setdefault(key, []).append(label)
    return found


def _listed(labels: Sequence[str], rows: Mapping[str, MemberRow]) -> str:
    if len(labels) == len(rows):
        return "all methods"
    return ", ".join(f'"{label}"' if "," in label else label for label in labels)


def mean_and_spread(scores: FloatArray) -> str:
    """Return mean and sample standard deviation of scores as text."""
    known = scores[np.isfinite(scores)]
    if not len(known):
        return _NONE
    spread = f" ± {known.std(ddof=1):.3f}" if len(known) > 1 else ""
    return f"{known.mean():.3f}{spread}"


def p_in_words(p: float) -> str:
    """Return a p value as text."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _seconds(value: float) -> str:
    if value < 0.001:
        return "<0.001"
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def in_markdown(text: str) -> str:
    """Return text on one line in which no character has a meaning in Markdown's tables."""
    line = escaped(" ".join(text.split()))
    for character in "\\|*_<>`[]#":
        line = line.replace(character, f"\\{character}")
    return line
