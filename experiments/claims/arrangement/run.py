"""Shape and order found for real images, as stored, on their side, wrongly declared and
scrambled, and for tables.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from scipy.ndimage import gaussian_filter
from sklearn import datasets
from sklearn.feature_extraction.image import extract_patches_2d

from raysel import Dataset
from raysel.core.arrays import FloatArray, LabelArray
from raysel.data.layouts import Matrix
from raysel.study.inspection.arrangement import (
    arrangement_remark,
    find_arrangement,
    is_known,
    symmetry,
)
from raysel.study.inspection.column_correlations import SHORTEST_SIDE, chosen_samples

#: Letters that are symmetric top to bottom, but for what the font makes of them.
LETTERS = "BCDEHIKOX"
FACES = ("ORL", "UMIST", "PIE_68x42_32x32", "ORL_28x23", "AR100_32x32")


def images(folder: Path) -> Iterator[tuple[str, FloatArray, LabelArray]]:
    """Sets of upright images, (n, h, w), with their classes."""
    for name in (*FACES, "USPS"):
        stored = np.load(folder / f"{name}.npz")
        yield name, stored["X"].astype(np.float64), stored["y"]
    mfeat = np.load(folder / "Handwritten_mfeat.npz")
    yield "mfeat pix", mfeat["view_0"].astype(np.float64).reshape(-1, 16, 15), mfeat["y"]
    digits = datasets.load_digits()
    yield "digits", digits.images, digits.target


def tables(folder: Path) -> Iterator[tuple[str, FloatArray]]:
    """Sets whose columns are not the cells of an image."""
    lsp = np.load(folder / "LSP_sift_128x85.npz")["X"]
    yield "LSP descriptors x patches", lsp.reshape(len(lsp), -1)
    for name in ("Handwritten_mfeat", "MSRCv1_6v", "MSRCv2_6v_multilabel", "Scene_multilabel"):
        stored = np.load(folder / f"{name}.npz")
        views = [f"view_{i}" for i in range(len(stored["view_names"]))]
        for view, called in zip(views, stored["view_names"], strict=True):
            if called != "pix":
                yield f"{name} {called}", stored[view]
        yield f"{name} all", np.hstack([stored[view] for view in views])
    for load in (
        datasets.load_wine,
        datasets.load_breast_cancer,
        datasets.load_diabetes,
        datasets.load_iris,
    ):
        yield load.__name__.removeprefix("load_"), load().data


def remark(
    X: FloatArray, shape: tuple[int, int], order: str = "C", y: LabelArray | None = None
) -> str:
    """The remark on rows that a study declares to have the shape and order."""
    columns = np.arange(X.shape[1]).reshape(shape, order=order).ravel()
    labels = np.arange(len(X)) % 2 if y is None else y
    return arrangement_remark(Dataset(X[:, columns], labels, Matrix(*shape))) or ""


def on_images(folder: Path) -> None:
    """Print what is found for each set and form, and which declared shapes are remarked on."""
    print(
        "| set | rows stored | usual order | found | right | known | symmetry | correlation | next"
        " best shape |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    rows, generator = [], np.random.default_rng(0)
    for name, X, y in images(folder):
        n, h, w = X.shape
        upright, turned = X.reshape(n, -1), X.transpose(0, 2, 1).reshape(n, -1)
        for form, stored, order in (("upright", upright, "C"), ("on their side", turned, "F")):
            for column_major in (False, True):
                found = find_arrangement(stored, y, column_major=column_major)
                if found is None:
                    print(
                        f"| {name} {h} x {w} | {form} | {'CF'[column_major]} | none | NO | | | | |"
                    )
                    continue
                right = "yes" if (found.shape, found.order) == ((h, w), order) else "NO"
                print(
                    f"| {name} {h} x {w} | {form} | {'F' if column_major else 'C'} |"
                    f" {found.shape[0]} x {found.shape[1]} {found.order} | {right} |"
                    f" {'yes' if found.order_known else 'no'} | {found.symmetry:.1f} |"
                    f" {found.correlation:.3f} | {found.runner_up:.3f} |"
                )
        scrambled = upright[:, generator.permutation(h * w)]
        wrong = [
            (side, h * w // side, order)
            for side in range(SHORTEST_SIDE, h * w // SHORTEST_SIDE + 1)
            if h * w % side == 0 and side != h
            for order in "CF"
            if (side, order) != (w, "F")  # the image on its side, in another column of the table
        ]
        named = [f"[{h}, {w}] and order C" in remark(upright, (a, b), o, y) for a, b, o in wrong]
        rows.append(
            (
                f"{name} {h} x {w}",
                remark(upright, (h, w), y=y) or "-",
                f"{sum(named)} of {len(wrong)}",
                "said" if remark(turned, (w, h), y=y) else "-",
                ("said" if remark(turned, (h, w), y=y) else "-") if h != w else "as before",
                ("said" if remark(upright, (h, w), "F", y) else "-") if h != w else "as before",
                "found" if find_arrangement(scrambled) else "none",
                "said" if "not in the order of an image" in remark(scrambled, (h, w), y=y) else "-",
            )
        )
    print(
        "\n| set | declared rightly | other sides | on their side | F left out | F too much |"
        " scrambled: shape | scrambled: remark |\n|---|---|---|---|---|---|---|---|"
    )
    for row in rows:
        print("|", " | ".join(row), "|")


def on_tables(folder: Path) -> None:
    """Print the tables for which a shape is found, and the remarks on LSP."""
    names = []
    for name, X in tables(folder):
        names.append(name)
        if (found := find_arrangement(X)) is not None:
            print(f"table {name}: {found.describe()}")
        if name.startswith("LSP"):
            print("LSP declared 128 x 85:", remark(X, (128, 85)) or "no remark")
    print(f"{len(names)} tables looked at: {', '.join(names)}")


def claim(X: FloatArray, y: LabelArray) -> tuple[int, float]:
    """Whether upright images are taken for upright (1), on their side (-1) or neither (0), and
    their symmetry.
    """
    samples, rows = chosen_samples(X.reshape(len(X), -1))
    ratio = symmetry(samples, X.shape[1:])
    known = is_known(ratio, samples, y[rows], X.shape[1:])
    return (0 if not known else 1 if ratio > 1 else -1), ratio


def letters(size: int, generator: np.random.Generator) -> tuple[FloatArray, LabelArray]:
    """20 jittered drawings each of letters that are more or less symmetric top to bottom."""
    drawn, y = [], np.arange(20 * len(LETTERS)) // 20
    for letter in np.repeat(list(LETTERS), 20):
        image = Image.new("L", (2 * size, 2 * size))
        place = tuple(size + 1.5 * generator.standard_normal(2))
        font = ImageFont.load_default(size=int(size * generator.uniform(1.4, 1.8)))
        ImageDraw.Draw(image).text(place, str(letter), font=font, fill=255, anchor="mm")
        turned = image.rotate(4 * generator.standard_normal(), resample=Image.Resampling.BILINEAR)
        drawn.append(
            np.asarray(turned.resize((size, size), Image.Resampling.BILINEAR), dtype=np.float64)
        )
    X = np.stack(drawn)
    return X + 10 * generator.standard_normal(X.shape), y


def on_classes(folder: Path, draws: int) -> None:
    """Print how often the order of a few classes of a set is taken as known, rightly and
    wrongly.
    """
    print(
        "| set | subsets | known, right | known, WRONG | lowest ratio | highest"
        " |\n|---|---|---|---|---|---|"
    )
    generator = np.random.default_rng(0)
    sets = list(images(folder))
    for size in (16, 24, 32):
        X, y = letters(size, generator)
        sets.append((f"letters {size} x {size}", X, y))
    sets.append(("the last, folded", (X + X[:, ::-1]) / 2, y))
    for name, X, y in sets:
        classes = np.unique(y)
        for size in (2, 3, 4, 5, 6, 10):
            if size > len(classes):
                continue
            if len(classes) <= 10:
                chosen = list(combinations(classes, size))
            else:
                chosen = [
                    tuple(generator.choice(classes, size, replace=False)) for _ in range(draws)
                ]
            claims = np.array(
                [claim(X[np.isin(y, subset)], y[np.isin(y, subset)]) for subset in chosen]
            )
            print(
                f"| {name} | {len(chosen)} of {size} classes | {(claims[:, 0] == 1).mean():.2f} |"
                f" {(claims[:, 0] == -1).mean():.2f} | {claims[:, 1].min():.2f} |"
                f" {claims[:, 1].max():.2f} |"
            )


def on_photographs(draws: int) -> None:
    """Print what is found for patches of two photographs: gray, and in colour as a table that
    lost its axes.
    """
    print(
        "| photograph | patches | gray | colour as the last axis | colour as the first axis"
        " |\n|---|---|---|---|---|"
    )
    for name in ("china.jpg", "flower.jpg"):
        for h, w in ((16, 16), (16, 15), (24, 33), (32, 30)):
            patches = extract_patches_2d(
                datasets.load_sample_image(name), (h, w), max_patches=draws, random_state=0
            )
            forms = (patches.mean(axis=-1), patches, np.moveaxis(patches, -1, 1))
            found = [find_arrangement(form.reshape(draws, -1)) for form in forms]
            print(
                f"| {name} | {h} x {w} |",
                " | ".join(str(one.shape) if one else "none" for one in found),
                "|",
            )


def on_fields(generator: np.random.Generator, draws: int) -> None:
    """Print how often the shape of smooth random fields is found, by smoothness and noise."""
    print(
        "| Gaussian, SD down, across | noise, SD | right shape | none | WRONG shape | order"
        " claimed |"
    )
    print("|---|---|---|---|---|---|")
    for smooth in ((0.5, 0.5), (1, 1), (3, 3), (3, 1), (1, 3), (0.7, 2)):
        for noise in (0.0, 0.3, 1.0):
            right = none = wrong = claimed = 0
            for _ in range(draws):
                shape = tuple(int(side) for side in generator.integers(8, 33, 2))
                fields = gaussian_filter(generator.standard_normal((60, *shape)), (0, *smooth))
                fields = fields / fields.std() + noise * generator.standard_normal(fields.shape)
                found = find_arrangement(fields.reshape(60, -1))
                none += found is None
                right += found is not None and found.shape == shape
                claimed += found is not None and found.order_known
            wrong = draws - none - right
            print(
                f"| {smooth[0]}, {smooth[1]} | {noise} | {right} | {none} | {wrong} | {claimed} |"
            )


def on_wide(generator: np.random.Generator) -> None:
    """Print the CPU time for 1000 images of 250 x 400."""
    steps = generator.standard_normal((1000, 250, 400), dtype=np.float32)
    X = steps.cumsum(axis=1).cumsum(axis=2).reshape(1000, -1)
    start = time.process_time()
    found = find_arrangement(X)
    print(
        f"1000 x {X.shape[1]}: {found and found.shape} in {time.process_time() - start:.1f} s"
        " of CPU"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--draws", type=int, default=200, help="subsets of classes for each set and size"
    )
    arguments = parser.parse_args()
    folder = Path(os.environ["RAYSEL_DATA"])
    on_images(folder)
    print()
    on_tables(folder)
    print()
    on_classes(folder, arguments.draws)
    print()
    on_photographs(400)
    print()
    on_fields(np.random.default_rng(0), 50)
    print()
    on_wide(np.random.default_rng(0))


if __name__ == "__main__":
    main()
