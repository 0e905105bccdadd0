#!/usr/bin/env bash
# Fails if the given packages use code with a known vulnerability: advisories.sh DIRECTORY EXEMPTIONS PACKAGE...
# DIRECTORY contains the advisories as OSV files. Each line of EXEMPTIONS contains an advisory that does no harm, the
# name of the test that shows this, and the reason; remove lines whose vulnerable code is no longer used. GOVULNCHECK
# and INDEXDB are the paths of the programs from golang.org/x/vuln and golang.org/x/vulndb.
set -euo pipefail
directory="$(realpath -e "$1")"
exemptions="$(realpath -e "$2")"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir "$work/advisories" "$work/exempt"
find "$directory" -name '*.json' -exec ln -s -t "$work/advisories" {} +
known="$(find "$work/advisories" -type l | wc -l)"
[ "$known" -gt 0 ] || { echo "$directory contains no advisories" >&2; exit 1; }

line=0
lines=()
while read -r id test why; do
  line=$((line + 1))
  [[ "$id" = '#'* || -z "$id" ]] && continue
  [ -n "$why" ] || { echo "$id has no reason in $exemptions" >&2; exit 1; }
  git grep -q --untracked "^func $test(" -- '*_test.go' || { echo "$id names the test $test, which does not exist" >&2; exit 1; }
  mv "$work/advisories/$id.json" "$work/exempt/" || { echo "$directory contains no advisory $id" >&2; exit 1; }
  lines+=("$line $id")
done <"$exemptions"

if [ ${#lines[@]} -gt 0 ]; then
  "$INDEXDB" -vulns "$work/exempt" -out "$work/exempt-database"
  reach="$("$GOVULNCHECK" -db "file://$work/exempt-database" "${@:3}")" && status=0 || status=$?
  [ $status = 0 ] || [ $status = 3 ] || { echo "$reach" >&2; exit 1; } # 3: vulnerable code is used
  stale=0
  for exempt in "${lines[@]}"; do
    read -r line id <<<"$exempt"
    grep -q "^Vulnerability #[0-9]*: $id\$" <<<"$reach" || { echo "$2:$line: $id does not reach ${*:3}; remove it" >&2; stale=1; }
  done
  [ $stale = 0 ] || exit 1
fi

"$INDEXDB" -vulns "$work/advisories" -out "$work/database"
"$GOVULNCHECK" -db "file://$work/database" "${@:3}"
echo "none of $known advisories reaches ${*:3}"
