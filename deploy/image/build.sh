#!/usr/bin/env bash
# Builds the service's image as an OCI archive, without a daemon: build.sh ARCHIVE. ARCHS lists the architectures.
# Builds are reproducible with the same commit, Go and buildah: all times are SOURCE_DATE_EPOCH, by default the time of
# the commit, and file modes do not depend on the checkout.
set -euo pipefail
umask 022
archive="$(realpath -m "$1")"
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

read -ra archs <<<"${ARCHS:-amd64 arm64}"
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}" "${REVISION:=$(git rev-parse HEAD)}" "${VERSION:=$REVISION}"

context=bin/image
rm -rf "$context"
mkdir -p "$context/data"
for arch in "${archs[@]}"; do
  CGO_ENABLED=0 GOOS=linux GOARCH="$arch" go build -trimpath -ldflags="-s -w ${NAMED:-}" \
    -o "$context/linux/$arch/" ./cmd/rewardwatch
done
# Paths below $context/root are paths in the image. The certificates come from the Debian package ca-certificates.
install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$context/root/etc/ssl/certs/ca-certificates.crt"
install -D -m 644 "$(go env GOROOT)/lib/time/zoneinfo.zip" "$context/root/usr/share/zoneinfo.zip"
install -D -m 644 LICENSE "$context/root/usr/share/doc/rewardwatch/copyright"
install -m 644 NOTICE "$context/root/usr/share/doc/rewardwatch/"
deploy/package/licenses.sh >"$context/root/usr/share/doc/rewardwatch/third-party-licenses.txt"
echo 'rewardwatch:x:65532:65532::/data:/sbin/nologin' >"$context/root/etc/passwd"
echo 'rewardwatch:x:65532:' >"$context/root/etc/group"

# Separate storage, so that no earlier image is reused and none is left behind.
storage="$(mktemp -d)"
trap 'rm -rf "$storage"' EXIT
buildah() { command buildah --storage-driver vfs --root "$storage/root" --runroot "$storage/run" "$@"; }
platforms="$(printf ',linux/%s' "${archs[@]}")"
buildah build --quiet --isolation chroot --format oci --identity-label=false --timestamp "$SOURCE_DATE_EPOCH" \
  --platform "${platforms:1}" --manifest rewardwatch --file deploy/image/Dockerfile \
  --build-arg VERSION="$VERSION" --build-arg REVISION="$REVISION" \
  --build-arg CREATED="$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)" "$context"
rm -f "$archive"
mkdir -p "$(dirname "$archive")"
buildah manifest push --quiet --all rewardwatch "oci-archive:$archive:${VERSION//\~/-}"
