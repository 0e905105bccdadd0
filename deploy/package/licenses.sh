#!/usr/bin/env bash
# Prints the licenses of the modules linked into a program (default: the service), and of the console's scripts. Fails
# if a module has none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

section() { # NAME FILE...
  printf '%s\n%s\n\n' "==== $1 ====" "$(cat "${@:2}")"
}

modules=$(go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' "${1:-./cmd/rewardwatch}" | sort -u)
section "Go $(go env GOVERSION)" "$(go env GOROOT)/LICENSE"
while read -r path version dir; do
  mapfile -t files < <(find "$dir" -maxdepth 1 -type f \( -iname 'license*' -o -iname 'licence*' -o -iname 'copying*' -o -iname 'notice*' \) | sort)
  ((${#files[@]})) || { echo "$path $version has no license" >&2; exit 1; }
  section "$path $version" "${files[@]}"
done <<<"$modules"
for license in cmd/rewardwatch/internal/console/web/vendor/*LICENSE*; do
  section "${license##*/}" "$license"
done
