"""MKL: CPU seconds, iterations and peak memory of a fit by the number of training samples."""

from functools import partial

from experiments.growth import time_fits
from experiments.timing import N_CLASSES, WIDTHS, save
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
        name = f"{loss}, norm {norm}"
        quick = 0 if norm == "inf" else 1500
        make = partial(MKL, WIDTHS, loss, norm, C=10.0)
        found[name] = time_fits(make, sizes, name=name, quick=quick)
        save(__file__, {"modalities": list(WIDTHS.values()), "classes": N_CLASSES, "cases": found})


if __name__ == "__main__":
    main()
