#!/usr/bin/env bash
# Runs a real Alertmanager on loopback, from Debian's package `prometheus-alertmanager`, whose service is not used.
#
#   alertmanager.sh start   start in the background, return when it is ready; no effect if it runs
#   alertmanager.sh stop    stop it; the data stays
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
  # With an empty cluster address it does not gossip with other machines.
  start_server alertmanager "$dir" "$port" ready "${ALERTMANAGER_BINARY:-prometheus-alertmanager}" --config.file="$config" \
    --storage.path="$dir/data" --web.listen-address="127.0.0.1:$port" --cluster.listen-address=
  ;;
stop) stop_server alertmanager "$dir" ;;
*)
  sed -n '2,/^set /p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//' >&2
  exit 2
  ;;
esac
