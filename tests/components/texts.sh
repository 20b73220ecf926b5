#!/usr/bin/env bash
# Fetches the texts of strangers that the reviewer is measured on and prints their folder: the value of SLUICE_TEST_TEXTS.
#
# The folder is ${XDG_CACHE_HOME:-~/.cache}/sluice-tools/texts. It has the archives of npm and of PyPI and `texts.jsonl`;
# those of crates stay in Cargo's own folders. What is there is not fetched again, but every text is checked again.
set -euo pipefail
corpus=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/operators/models/corpus
home=${XDG_CACHE_HOME:-$HOME/.cache}/sluice-tools/texts
python3 "$corpus/fetch.py" "$home" >&2
printf '%s\n' "$home"
