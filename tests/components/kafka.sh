#!/usr/bin/env bash
# Brings Apache Kafka onto this machine and prints the folder of its jars: the value of SLUICE_TEST_KAFKA.
#
# From Maven Central, about 43 MB, into ${XDG_CACHE_HOME:-~/.cache}/sluice-tools/kafka; done before: nothing to do.
# Needs a JDK of at least 17 and Maven; building the client needs a C++ compiler, make, pkg-config and OpenSSL's headers.
# On Debian and its kin what is missing is installed, which needs root.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${XDG_CACHE_HOME:-$HOME/.cache}/sluice-tools/kafka
libs=$home/libs

if ! { command -v java && command -v mvn && command -v g++ && command -v make && pkg-config --exists libssl; } >/dev/null 2>&1 &&
  command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  {
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
      openjdk-17-jre-headless maven g++ make pkg-config libssl-dev zlib1g-dev
  } >&2
fi

# The pom says which versions; one that was fetched stays beside what it fetched.
if ! cmp -s "$here/kafka.pom.xml" "$home/pom.xml"; then
  for tool in java mvn; do
    command -v "$tool" >/dev/null || {
      printf 'error: %s is missing; apt-get install openjdk-17-jre-headless maven\n' "$tool" >&2
      exit 1
    }
  done
  mkdir -p "$home"
  fresh=$(mktemp -d "$home/fetch.XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  cp "$here/kafka.pom.xml" "$fresh/pom.xml"
  (cd "$fresh" && mvn --batch-mode --quiet dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=libs) >&2
  rm -rf "$home/pom.xml" "$libs"
  mv "$fresh/libs" "$libs"
  mv "$fresh/pom.xml" "$home/pom.xml"
fi
printf '%s\n' "$libs"
