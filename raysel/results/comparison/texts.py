"""Text of a comparison: its tables as strings, the footnotes of their figures, and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from raysel.core.printing import mean_and_sd
from raysel.results.agreement import Agreement
from raysel.results.comparison.result import ComparisonResult
from raysel.results.comparison.rows import LEVEL, MemberRow, Pair, group_labels
from raysel.results.facts import Facts
from raysel.results.remarks import few_folds_remarks, short_remarks
from raysel.results.scores import FoldValues
from raysel.results.tables import NO_RESULT, NONE, TextTable, in_markdown
from raysel.results.texts import (
    VERDICTS,
    difference_cell,
    number_range,
    rule_sentence,
    scored_number,
)


@dataclass(frozen=True)
class ComparisonText:
    """Tables and sentences of a comparison."""

    title: str
    #: A sentence on each member beside the reference.
    answer: list[str]
    #: Which members are better than the reference, worse or neither, in one sentence.
    verdict: str
    tables: list[TextTable]
    #: The table of differences to the reference, one of the tables; None if there are none.
    differences: TextTable | None
    notes: list[str]
    remarks: list[str]

    def markdown(self) -> str:
        """Return the text in Markdown."""
        parts = [f"# {in_markdown(self.title)}", "  \n".join(map(in_markdown, self.answer))]
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
        marks = [str(self.numbers.setdefault(note, len(self.numbers) + 1)) for note in notes]
        return f" [{', '.join(marks)}]" if marks else ""

    def lines(self) -> list[str]:
        return [f"[{number}] {note}." for note, number in self.numbers.items()]


def comparison_text(comparison: ComparisonResult) -> ComparisonText:
    """Return the tables of a comparison as strings, with their footnotes and remarks."""
    rows, pairs, notes = list(comparison.rows.values()), comparison.pairs, _Notes()
    runs = "draws" if comparison.folds and comparison.folds.are_draws else "outer folds"
    tables = [_score_table(comparison, f"Test scores, mean ± SD over the {runs}", notes)]
    if tasks := dict.fromkeys(chain.from_iterable(row.facts.by_task for row in rows)):
        title = f"Test {comparison.metric} of each task, mean ± SD over the {runs}"
        cells = [[_mean_and_sd(row.facts.by_task.get(task)) for task in tasks] for row in rows]
        tables.append(_by_method(title, [*tasks], rows, cells))
    # Scores at each number of features that all members with such numbers have in common, if there
    # are two of each.
    scored = [row for row in rows if row.by_n]
    common = sorted(set.intersection(*(set(row.by_n) for row in scored))) if scored else []
    if len(scored) > 1 and len(common) > 1:
        title = f"Test scores at each common number of best features, mean ± SD over the {runs}"
        cells = [[_mean_and_sd(row.by_n[n]) for n in common] for row in scored]
        tables.append(_by_method(title, [*map(str, common)], scored, cells))
    differences = _difference_table(comparison, list(pairs.values())) if pairs else None
    if differences is not None:
        tables.append(differences)
    if rows:
        tables.append(_settings_table(rows))
    folds = f" on the same {comparison.folds.describe()}" if comparison.folds else ""
    title = f"{comparison.name}: {len(comparison.members)} methods{folds}"
    answer = [_verdict_sentence(comparison, pair) for pair in pairs.values()]
    return ComparisonText(
        title=title,
        answer=answer,
        verdict=_verdict_of_all(comparison),
        tables=tables,
        differences=differences,
        notes=notes.lines(),
        remarks=list(_remarks(comparison, rows)),
    )


def _by_method(
    title: str, names: list[str], rows: Sequence[MemberRow], cells: list[list[str]]
) -> TextTable:
    lines = [[row.label, *others] for row, others in zip(rows, cells, strict=True)]
    return TextTable(["method", *names], lines, title)


def _score_table(comparison: ComparisonResult, title: str, notes: _Notes) -> TextTable:
    rows = comparison.rows
    columns: dict[str, Callable[[MemberRow], str]] = {
        "method": lambda row: row.label + notes.mark(row.notes["member"]),
        f"test {comparison.metric or 'score'}": lambda row: (
            _mean_and_sd(row.facts.test) + notes.mark(row.notes["test"])
        ),
    }
    if any(row.by_n for row in rows.values()):
        columns["features"] = lambda row: scored_number(row.facts) or NONE
    reported = chain.from_iterable(row.facts.report for row in rows.values())
    for name in dict.fromkeys(reported):
        columns[name] = lambda row, name=name: (  # type: ignore[misc]
            _mean_and_sd(row.facts.report.get(name)) + notes.mark(row.notes.get(name, []))
        )
    if any(row.redundancy is not None for row in rows.values()):
        columns["RED"] = lambda row: _cell(row.redundancy, "{:.3f}".format)
    if any(row.facts.agreement for row in rows.values()):
        columns["stability"] = lambda row: _stability(row.facts.agreement, notes)
    columns["configurations tried"] = lambda row: (
        number_range(row.facts.n_tried) + notes.mark(row.notes["tried"])
    )
    columns["CPU s a fit"] = lambda row: _cell(row.cpu_seconds, _seconds)
    lines = []
    for member in comparison.members:
        if row := rows.get(member.label):
            lines.append([cell(row) for cell in columns.values()])
        else:
            why = notes.mark([member.failure.rstrip(".")])
            lines.append([member.label, NO_RESULT + why, *[""] * (len(columns) - 2)])
    return TextTable([*columns], lines, title)


def _cell(value: float | None, form: Callable[[float], str]) -> str:
    return NONE if value is None else form(value)


def _stability(agreement: Agreement | None, notes: _Notes) -> str:
    if agreement is None:
        return NONE
    if reason := agreement.stability.reason:
        return NONE + notes.mark([f"the stability is undefined: {reason}"])
    if agreement.noise is None:
        return str(agreement.stability)
    return f"{agreement.stability} ({agreement.noise.mean:.2f})"


def _verdict_sentence(comparison: ComparisonResult, pair: Pair) -> str:
    reference = comparison.reference
    scores = [_mean(comparison.rows[label]) for label in (reference, pair.label)]
    pool = " on these samples" if pair.is_of_pool else ""
    verdict = VERDICTS.get(pair.verdict, f"{pair.label} is {pair.verdict}{pool}")
    return f"With {reference} the score is {scores[0]}, with {pair.label} {scores[1]}: {verdict}."


def _verdict_of_all(comparison: ComparisonResult) -> str:
    """Return which members are better or worse than the reference; empty without a pair."""
    labels = group_labels((pair.verdict, pair.label) for pair in comparison.pairs.values())
    told = [f"{VERDICTS.get(verdict, verdict)}: {', '.join(of)}" for verdict, of in labels.items()]
    return f"Compared with {comparison.reference}, {'; '.join(told)}." if told else ""


def _mean(row: MemberRow) -> str:
    """Mean test score of a member, of which it is said if an outer fold has none."""
    return mean_and_sd(row.facts.test.mean)


def _difference_table(comparison: ComparisonResult, pairs: Sequence[Pair]) -> TextTable:
    main = pairs[0].main
    beside = "corrected" if main == "plain" else "plain"
    header = [
        "method",
        "difference [95 % interval]",
        "SD",
        f"p ({main})",
        f"p ({beside})",
        "won/tied/lost",
    ]
    lines = []
    for pair in pairs:
        compared, test = pair.compared, pair.test
        p = [format_p(pair.p[name]) if test else NONE for name in (main, beside)]
        runs = f"{compared.won}/{compared.tied}/{compared.lost}"
        lines.append([pair.label, difference_cell(compared, test), f"{compared.sd:.3f}", *p, runs])
    title = f"Difference to the reference, {comparison.reference}: mean, SD and runs won"
    ratio = f"; n_test/n_train = {comparison.folds.ratio:.3g}" if comparison.folds else ""
    return TextTable(header, lines, title + ratio)


def _settings_table(rows: Sequence[MemberRow]) -> TextTable:
    data = {row.label: row.facts.study.config["dataset"] for row in rows}
    scalings = list(dict.fromkeys(section.get("scaling", NONE) for section in data.values()))
    columns: dict[str, Callable[[MemberRow], str]] = {
        "method": lambda row: row.label,
        "solver": lambda row: row.facts.method,
        "fixed parameters": lambda row: _fixed(row.facts.study.config["solver"]),
    }
    if any(section.get("only") for section in data.values()):
        columns["modalities"] = lambda row: ", ".join(data[row.label].get("only") or ["all"])
    if len(scalings) > 1:
        columns["scaling"] = lambda row: data[row.label].get("scaling", NONE)
    columns["most frequent winner (folds)"] = _most_frequent_winner
    lines = [[cell(row) for cell in columns.values()] for row in rows]
    title = "Settings"
    if len(scalings) == 1:
        title = f"Settings; scaling of all methods: {scalings[0]}"
    return TextTable([*columns], lines, title)


def _fixed(solver: Mapping[str, Any]) -> str:
    params = solver.get("params", {}).items()
    return ", ".join(f"{name}={value}" for name, value in params) or NONE


def _most_frequent_winner(row: MemberRow) -> str:
    ((winner, count),) = Counter(refit.name for refit in row.facts.outer).most_common(1)
    return f"{winner} ({count} of {len(row.scores)})"


def _remarks(comparison: ComparisonResult, rows: Sequence[MemberRow]) -> Iterator[str]:
    """Sentences on how the figures are to be read."""
    for text, labels in group_labels((_scoring(row.facts), row.label) for row in rows).items():
        yield f"Scores of {_named(labels, rows)}: {text}"
    if any(row.redundancy is not None for row in rows):
        yield (
            "RED is redundancy, the mean absolute correlation of two of the features that count for"
            " stability."
        )
    if tops := [(row.facts.top, row.label) for row in rows if row.facts.agreement]:
        yield "Stability is Nogueira's: 1 if all outer folds select the same features."
        yield "In brackets stands the stability of the F-test with permuted labels."
        for top, labels in group_labels(tops).items():
            yield f"Stability is of the top {top} features ({_named(labels, rows)})."
        yield "This number is the middle one of evaluation.n_features, or a tenth of all features."
    if any(row.cpu_seconds is not None for row in rows):
        yield (
            "CPU s a fit is the winner's CPU time without its search, the median over the outer"
            " folds."
        )
    if comparison.pairs:
        yield from _test_remarks(comparison, comparison.pairs)
    elif rows and comparison.reference not in comparison.rows:
        yield (
            f"There are no differences and no tests: the reference, {comparison.reference}, has no"
            " result."
        )


def _test_remarks(comparison: ComparisonResult, pairs: Mapping[str, Pair]) -> Iterator[str]:
    folds = comparison.folds
    if folds is None:
        return
    n_tests = sum(pair.test is not None for pair in pairs.values())
    if not n_tests:
        return
    runs = folds.describe_number()
    if folds.are_draws:
        yield f"Intervals and p (plain) are those of the paired t-test over {runs}."
        yield "They hold for these samples only, which stand for the whole population."
        yield "p (corrected) is that of the corrected resampled t-test (Nadeau & Bengio)."
        if folds.ratio >= 1:
            yield "With at least as many test as training samples it has next to no power."
    else:
        yield (
            f"Intervals and p (corrected) are those of the corrected resampled t-test over {runs}"
            " (Nadeau & Bengio)."
        )
        yield "It allows for training sets that overlap; p (plain), of the paired t-test, does not."
        if folds.are_repeated:
            yield "p (plain) is far too small here, because the folds are repeated."
            yield (
                "Over 5 x 5 folds of 40 simulated samples p (corrected) was at most .05 for 3 to 5"
                " % of equal methods."
            )
    # Holm's correction tells every difference that the level divided by the number of tests would
    # tell.
    tests = (pair.test for pair in pairs.values() if pair.verdict == "not distinguishable")
    n_folds = len(next(iter(pairs.values())).compared.differences)
    yield from short_remarks(
        few_folds_remarks(tests, n_folds, of_draws=folds.are_draws, level=LEVEL / n_tests)
    )
    if n_tests > 1:
        yield (
            f"All p values are after Holm's correction for {n_tests} tests; tests.csv has them"
            " without it too."
        )
        yield "The intervals are not adjusted."


def _scoring(facts: Facts) -> str:
    """How a member is scored."""
    rule = rule_sentence(facts.evaluation, facts.study.choose_n)
    if not facts.by_task:
        return rule
    return f"{rule} The score is the mean over {len(facts.by_task)} tasks."


def _named(labels: Sequence[str], rows: Sequence[MemberRow]) -> str:
    if len(labels) == len(rows):
        return "all methods"
    return ", ".join(f'"{label}"' if "," in label else label for label in labels)


def _mean_and_sd(values: FoldValues | None) -> str:
    known = values.known if values else None
    return mean_and_sd(known.mean, known.sd) if known else NONE


def format_p(p: float) -> str:
    """Return a p value as text."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _seconds(value: float) -> str:
    if value < 0.001:
        return "<0.001"
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
