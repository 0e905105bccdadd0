#!/usr/bin/env bash
# Runs a real Alertmanager on loopback, using Debian's `prometheus-alertmanager` package but not its service.
#
#   alertmanager.sh start   start in the background and return once it is ready; no effect if it is already running
#   alertmanager.sh stop    stop it; the data is kept
#
# ALERTMANAGER_DIR     data, log and pid file   (default .cache/run/alertmanager)
# ALERTMANAGER_PORT    port                     (default 9093)
# ALERTMANAGER_CONFIG  configuration            (default deploy/alertmanager/alertmanager.yml)
# ALERTMANAGER_BINARY  another version          (default prometheus-alertmanager)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/lib.sh"

dir=${ALERTMANAGER_DIR:-$root/.cache/run/alertmanager}
port=${ALERTMANAGER_PORT:-9093}
config=${ALERTMANAGER_CONFIG:-$root/deploy/alertmanager/alertmanager.yml}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

ready() { http_ready "$port" /-/ready; }

case "${1:-}" in
start)
  lock "$dir"
  # An empty cluster address prevents gossip with other machines.
  start_server alertmanager "$dir" "$port" ready "${ALERTMANAGER_BINARY:-prometheus-alertmanager}" --config.file="$config" \
    --storage.path="$dir/data" --web.listen-address="127.0.0.1:$port" --cluster.listen-address=
  ;;
stop) stop_server alertmanager "$dir" ;;
*)
  sed -n '2,/^set /p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//' >&2
  exit 2
  ;;
esac
