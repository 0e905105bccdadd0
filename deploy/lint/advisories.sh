#!/usr/bin/env bash
# Fails if a known vulnerability reaches the code of some packages: advisories.sh DIRECTORY EXEMPTIONS PACKAGE...
# DIRECTORY has the advisories as OSV files. Each line of EXEMPTIONS has an advisory that does no harm, the name of the
# test that shows so, and why. GOVULNCHECK and INDEXDB are the programs of golang.org/x/vuln and golang.org/x/vulndb.
set -euo pipefail
directory="$(realpath -e "$1")"
exemptions="$(realpath -e "$2")"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir "$work/advisories"
find "$directory" -name '*.json' -exec ln -s -t "$work/advisories" {} +
known="$(find "$work/advisories" -type l | wc -l)"
[ "$known" -gt 0 ] || { echo "$directory has no advisories" >&2; exit 1; }

while read -r id test why; do
  [[ "$id" = '#'* || -z "$id" ]] && continue
  [ -n "$why" ] || { echo "$id has no reason in $exemptions" >&2; exit 1; }
  git grep -q --untracked "^func $test(" -- '*_test.go' || { echo "$id names the test $test, which does not exist" >&2; exit 1; }
  rm "$work/advisories/$id.json" || { echo "$id is not an advisory of $directory" >&2; exit 1; }
done <"$exemptions"

"$INDEXDB" -vulns "$work/advisories" -out "$work/database"
"$GOVULNCHECK" -db "file://$work/database" "${@:3}"
echo "none of $known advisories reaches ${*:3}"
