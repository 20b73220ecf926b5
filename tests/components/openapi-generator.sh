#!/usr/bin/env bash
# Brings openapi-generator onto this machine and prints its jar: the value of SLUICE_TEST_OPENAPI_GENERATOR.
#
# From Maven Central, 32 MB, into ${XDG_CACHE_HOME:-~/.cache}/sluice-tools/openapi-generator; done before: nothing to do.
# Needs a Java of at least 11 and Maven, as kafka.sh. Its clients need Go of at least 1.23, and OpenSSL's headers for Rust.
set -euo pipefail
home=${XDG_CACHE_HOME:-$HOME/.cache}/sluice-tools/openapi-generator
version=7.25.0
sum=41ce4f6b07f196676439d710759fa1ced7a08066d06ff1bf314681470289efae
jar=$home/openapi-generator-cli-$version.jar

for tool in java mvn go; do
  command -v "$tool" >/dev/null || {
    printf 'error: %s is missing\n' "$tool" >&2
    exit 1
  }
done

is_whole() { printf '%s  %s\n' "$sum" "$1" | sha256sum --check --status 2>/dev/null; }
if ! is_whole "$jar"; then
  mkdir -p "$home"
  fresh=$(mktemp -d "$home/fetch.XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  mvn --batch-mode --quiet dependency:copy -Dartifact="org.openapitools:openapi-generator-cli:$version" \
    -DoutputDirectory="$fresh" >&2
  is_whole "$fresh/${jar##*/}" || {
    printf 'error: openapi-generator %s has another SHA-256\n' "$version" >&2
    exit 1
  }
  mv "$fresh/${jar##*/}" "$jar"
fi
printf '%s\n' "$jar"
