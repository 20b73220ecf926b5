#!/usr/bin/env bash
# Makes sure that there is a PostgreSQL server to start, and prints the folder of its programs.
#
# Tests start it themselves, in a temporary folder and on a free port; a service of the system is neither needed nor
# touched. On Debian and its kin the packages are installed where they are missing, which needs root.
set -euo pipefail

# The newest server that has what tests need.
programs() {
  if [ -n "${SLUICE_TEST_POSTGRES:-}" ]; then
    printf '%s\n' "$SLUICE_TEST_POSTGRES"
    return
  fi
  local folders
  folders=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null || true)
  if [ -z "$folders" ] && command -v pg_config >/dev/null; then
    folders=$(pg_config --bindir)
  fi
  printf '%s\n' "$folders" | sort -V | while read -r folder; do
    if [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ]; then printf '%s\n' "$folder"; fi
  done | tail -n 1
}

found=$(programs)
if [ -z "$found" ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  # The packages would start a service of their own with a database that nobody asked for.
  mkdir -p /etc/postgresql-common
  [ -e /etc/postgresql-common/createcluster.conf ] ||
    printf 'create_main_cluster = false\n' >/etc/postgresql-common/createcluster.conf
  {
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends postgresql postgresql-client procps
  } >&2
  found=$(programs)
fi
if [ -z "$found" ]; then
  printf 'error: there is no PostgreSQL server here, and it could not be installed\n' >&2
  exit 1
fi
printf '%s\n' "$found"
