"""MKL: CPU seconds, iterations and peak memory of a fit by the number of training samples."""

from functools import partial

from kernel_timing import N_CLASSES, WIDTHS, growth, save, time_fit

from raysel.baselines.mkl import MKL

#: Loss, norm, numbers of samples: fewer where a fit takes minutes.
CASES = [
    ("squared", 2, [500, 1500, 3000, 6000]),
    ("squared", "inf", [500, 1500, 3000]),
    ("hinge", 1, [500, 1500, 3000, 6000]),
    ("hinge", 2, [500, 1500, 3000, 6000]),
    ("hinge", "inf", [500, 1500, 3000]),
]


def main():
    """Print one line a size, and write mkl.json."""
    found = {}
    for loss, norm, sizes in CASES:
        rows = []
        for n in sizes:
            rows.append(
                time_fit(
                    partial(MKL, WIDTHS, loss, norm, C=10.0),
                    n,
                    3 if n <= 1500 and norm != "inf" else 1,
                )
            )
            print(loss, norm, rows[-1], flush=True)
        found[f"{loss}, norm {norm}"] = {"sizes": rows, "growth": growth(rows)}
        save(__file__, {"modalities": list(WIDTHS.values()), "classes": N_CLASSES, "cases": found})
        print(loss, norm, "exponents of n", growth(rows), flush=True)


if __name__ == "__main__":
    main()
