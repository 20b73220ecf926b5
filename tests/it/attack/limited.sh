#!/bin/sh
# Starts the program that SLUICE_TEST_PROGRAM names, with a soft limit of 256 open files and a hard one of 1,024.
set -eu
ulimit -S -n 256
ulimit -H -n 1024
exec "$SLUICE_TEST_PROGRAM" "$@"
