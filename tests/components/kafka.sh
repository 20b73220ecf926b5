#!/usr/bin/env bash
# Brings Apache Kafka onto this machine and prints the folder of its jars: the value of SLUICE_TEST_KAFKA.
#
# From Maven Central, about 43 MB, into ${XDG_CACHE_HOME:-~/.cache}/sluice-tools/kafka; done before: nothing to do.
# Needs a JDK of at least 17 and Maven; building the client needs a C++ compiler, make and OpenSSL's headers:
#   apt-get install openjdk-17-jre-headless maven g++ make libssl-dev
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${XDG_CACHE_HOME:-$HOME/.cache}/sluice-tools/kafka
libs=$home/libs

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
