#!/usr/bin/env bash
# Builds the source distribution of the Python package, and a wheel from it, with the setuptools of the given
# interpreter: python.sh PYTHON DIR. Builds are reproducible with the same commit and setuptools: all times are
# SOURCE_DATE_EPOCH, by default the time of the commit, and file modes do not depend on the checkout.
set -euo pipefail
umask 022
python="$(realpath -s "$1")"
mkdir -p "$2"
dir="$(cd "$2" && pwd)"
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH

# A copy, because setuptools writes to its source directory.
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/source/rewardwatch" "$work/made" "$work/packed"
(cd ingest/emitters/python && install -m 644 pyproject.toml README.md "$work/source" && install -m 644 rewardwatch/*.py rewardwatch/py.typed "$work/source/rewardwatch")
install -m 644 LICENSE NOTICE "$work/source"
(cd "$work/source" && "$python" -c 'import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])' "$work/made" >"$work/log") || { cat "$work/log" >&2; exit 1; }

# Repacks the archive, because setuptools records the build time in it.
archive=("$work"/made/rewardwatch-*.tar.gz)
name="$(basename "${archive[0]}")"
tar -xzf "${archive[0]}" -C "$work/packed"
tar -C "$work/packed" --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - "${name%.tar.gz}" | gzip -9n >"$work/$name"
"$python" -m pip wheel --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation --wheel-dir "$work" "$work/$name"
cp "$work/$name" "$work"/rewardwatch-*.whl "$dir"
