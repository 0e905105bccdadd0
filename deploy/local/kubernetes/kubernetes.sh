#!/usr/bin/env bash
# Runs a real Kubernetes API server on loopback, with Debian's etcd and RBAC, but without controllers or nodes.
#
#   kubernetes.sh fetch   build the API server (done once; it takes 9 minutes of CPU)
#   kubernetes.sh start   fetch, start both in the background and return once they are ready; no effect if running
#   kubernetes.sh stop    stop both; the next start discards the data
#
# KUBERNETES_DIR             logs, pid files, ca.crt of the API server, and admin.token, which has full access
#                            (default .cache/run/kubernetes)
# KUBERNETES_PORT            port of the API server               (default 16443)
# KUBERNETES_ETCD_PORT       port of etcd                         (default 16444)
# KUBERNETES_ETCD_PEER_PORT  etcd port for cluster peers          (default 16445)
# KUBERNETES_HOME            where it is built                    (default .cache/kubernetes)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
. "$here/../lib.sh"

home=${KUBERNETES_HOME:-$root/.cache/kubernetes}
dir=${KUBERNETES_DIR:-$root/.cache/run/kubernetes}
port=${KUBERNETES_PORT:-16443}
etcd_port=${KUBERNETES_ETCD_PORT:-16444}
peer_port=${KUBERNETES_ETCD_PEER_PORT:-16445}
mkdir -p "$dir" "$home"
dir=$(cd "$dir" && pwd)

# The name contains a hash of go.sum, so a new version triggers a build. The file is renamed into place at the end, so
# an interrupted build is repeated.
server=$home/kube-apiserver-$(sha256sum <"$here/go.sum" | cut -c1-16)
fetch() {
  exec 8>"$home/lock"
  flock 8
  if [ ! -e "$server" ]; then
    rm -f "$home"/kube-apiserver-*
    (cd "$here" && CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$server.new" k8s.io/kubernetes/cmd/kube-apiserver 8>&-)
    mv "$server.new" "$server"
  fi
  exec 8>&-
}

etcd_ready() { http_ready "$etcd_port" /health; }
ready() {
  printf 'GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' |
    openssl s_client -quiet -verify_return_error -CAfile "$dir/certs/apiserver.crt" -connect "127.0.0.1:$port" 2>"$dir/openssl.log" |
    grep -q '^HTTP/1.1 200'
}

# A new server starts with new data; otherwise, etcd would still contain the objects of another test.
init() {
  alive "$dir/etcd.pid" "$dir/" || rm -rf "$dir/data"
  [ ! -e "$dir/admin.token" ] || return 0
  (
    umask 077
    openssl genrsa -out "$dir/service-accounts.key" 2048 2>"$dir/openssl.log"
    openssl rand -hex 24 >"$dir/admin.token.new"
    echo "$(cat "$dir/admin.token.new"),admin,admin,system:masters" >"$dir/tokens.csv"
  )
  mv "$dir/admin.token.new" "$dir/admin.token"
}

# The ServiceAccount admission plugin would wait for a controller to create the default account.
start() {
  fetch
  lock "$dir"
  init
  start_server etcd "$dir" "$etcd_port" etcd_ready etcd --data-dir "$dir/data" --unsafe-no-fsync --log-level error \
    --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
    --listen-peer-urls "http://127.0.0.1:$peer_port" --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" \
    --initial-cluster "default=http://127.0.0.1:$peer_port"
  start_server kube-apiserver "$dir" "$port" ready "$server" --etcd-servers="http://127.0.0.1:$etcd_port" \
    --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$port" --cert-dir="$dir/certs" \
    --token-auth-file="$dir/tokens.csv" --authorization-mode=RBAC --disable-admission-plugins=ServiceAccount \
    --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$dir/service-accounts.key" \
    --service-account-signing-key-file="$dir/service-accounts.key" --service-cluster-ip-range=10.0.0.0/24 \
    --endpoint-reconciler-type=none --enable-priority-and-fairness=false --max-requests-inflight=400
  cp "$dir/certs/apiserver.crt" "$dir/ca.crt"
}

stop() {
  stop_server kube-apiserver "$dir"
  stop_server etcd "$dir"
}

case "${1:-}" in
fetch | start | stop) "$1" ;;
*)
  sed -n '2,/^set /p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//' >&2
  exit 2
  ;;
esac
