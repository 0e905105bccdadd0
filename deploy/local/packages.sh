#!/usr/bin/env bash
# Installs the Debian packages that the tests need, if their commands are missing. Needs root or sudo only to install
# packages.
set -euo pipefail

missing=()
# need PACKAGE COMMAND...: the package is missing if the command fails.
need() {
  "${@:2}" >/dev/null 2>&1 || missing+=("$1")
}
need gcc command -v gcc # cgo, for the race detector
need libc6-dev test -e /usr/include/stdlib.h
need default-jre-headless command -v java # the Kafka broker
need maven command -v mvn
need python3-venv python3 -c 'import ensurepip' # the Python package and its environments
need prometheus command -v prometheus
need prometheus-alertmanager command -v prometheus-alertmanager
need chromium-headless-shell command -v chromium-headless-shell # the tests of the console
need npm command -v npm # the accessibility checker that they use
need shellcheck command -v shellcheck # the generated pipelines
need systemd command -v systemd-analyze # to check the package's systemd unit
need rpm command -v rpm # the other package
need buildah command -v buildah # the container image
need gpg command -v gpg # signs releases
need gpg-agent command -v gpg-agent
need ca-certificates test -e /etc/ssl/certs/ca-certificates.crt # also part of the image
need etcd-server command -v etcd # for Kubernetes
need openssl command -v openssl # for its keys
need krb5-kdc test -x /usr/sbin/krb5kdc # started by the tests
need krb5-admin-server test -x /usr/sbin/kadmin.local
need postgresql compgen -G '/usr/lib/postgresql/*/bin/postgres'
((${#missing[@]})) || exit 0

as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
