#!/usr/bin/env bash
# Fetches the data files of strangers that inference and profiles are held against and prints their folder: the value of
# SLUICE_TEST_TABLES.
#
# The folder is ${XDG_CACHE_HOME:-~/.cache}/sluice-tools/tables. It has the archives of npm and of PyPI, and `files`. What is
# there is not fetched again, but every file is checked again.
set -euo pipefail
strangers=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/catalog/tabular/tests/strangers
home=${XDG_CACHE_HOME:-$HOME/.cache}/sluice-tools/tables
python3 "$strangers/fetch.py" "$home" >&2
printf '%s\n' "$home"
