#!/usr/bin/env bash
# Adds the bills of materials of the given binaries, and the checksums of all files, to a release in DIR: release.sh DIR
# BINARY... VERSION is the version of the release, and CYCLONEDX the path of cyclonedx-gomod. With SIGNING_KEY, gpg
# signs the checksums with that key, and the script prints its fingerprint, by which users can identify it. Refuses
# binaries built with a Go version older than OLDEST_GO.
set -euo pipefail
dir="$1"

for binary in "${@:2}"; do
  built="$(go version "$binary" | awk '{ print $NF }')"
  printf '%s\n' "$OLDEST_GO" "$built" | sort -VC || { echo "$binary was built with $built, which is older than $OLDEST_GO" >&2; exit 1; }
  platform="$(go version -m "$binary" | awk -F= '/\tbuild\tGOOS=/ { os = $2 } /\tbuild\tGOARCH=/ { arch = $2 } END { print os "_" arch }')"
  said="$("$CYCLONEDX" bin -json -noserial -notimestamp -version "v$VERSION" -output "$dir/rewardwatch_${VERSION}_$platform.cdx.json" "$binary" 2>&1)" || { echo "$said" >&2; exit 1; }
done
cd "$dir"
rm -f SHA256SUMS SHA256SUMS.asc
sha256sum -- * >.sums
mv .sums SHA256SUMS
[ -n "${SIGNING_KEY:-}" ] || exit 0
gpg --batch --armor --local-user "$SIGNING_KEY" --output SHA256SUMS.asc --detach-sign SHA256SUMS
fingerprint="$(gpg --batch --with-colons --fingerprint "$SIGNING_KEY" | awk -F: '/^fpr:/ { print $10; exit }')"
echo "The checksums are signed by the key $fingerprint: add it to SECURITY.md and the release notes"
