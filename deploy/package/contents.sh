#!/usr/bin/env bash
# Creates the package files that are not in the repository, from DIR/rewardwatch, in DIR: completions, manual pages, and
# the licenses of linked modules.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$1/completions"
dir=$(cd "$1" && pwd)
cd "$here/../.."

for shell in bash zsh fish; do "$dir/rewardwatch" completion $shell >"$dir/completions/rewardwatch.$shell"; done
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} go run ./cmd/rewardwatch/internal/manpages "$dir/man"
gzip -9n "$dir"/man/*.1
deploy/package/licenses.sh >"$dir/third-party-licenses.txt"
