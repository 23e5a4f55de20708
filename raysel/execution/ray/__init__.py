"""Executor on Ray; the only package that imports Ray."""

import os

# Read when Ray is imported: events of the cluster, which Ray prints even where no logs are asked
# for, are left out, because the study tells them in its own words.
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".?")
