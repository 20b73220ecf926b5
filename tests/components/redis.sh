#!/usr/bin/env bash
# Gets a Redis for the tests and prints where its program is. Idempotent; installs a package where that may be done.
set -euo pipefail

found() { command -v redis-server; }

if ! found >/dev/null && command -v apt-get >/dev/null; then
  sudo=
  if [ "$(id -u)" != 0 ]; then sudo='sudo -n'; fi
  # The package would start a server of its own; the tests start theirs.
  export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
  { $sudo apt-get update -qq && $sudo apt-get install -qq -y --no-install-recommends redis-server; } >/dev/null 2>&1 || true
fi
found || {
  printf 'there is no redis-server and it could not be installed\n' >&2
  exit 1
}
