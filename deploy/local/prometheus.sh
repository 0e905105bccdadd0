#!/usr/bin/env bash
# Runs a real Prometheus on loopback, using Debian's `prometheus` package but not its service.
#
#   prometheus.sh start   start in the background and return once it is ready; no effect if it is already running
#   prometheus.sh stop    stop it; the data is kept
#
# PROMETHEUS_DIR     data, log and pid file   (default .cache/run/prometheus)
# PROMETHEUS_PORT    port                     (default 9090)
# PROMETHEUS_CONFIG  configuration            (default deploy/prometheus/prometheus.yml)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/lib.sh"

dir=${PROMETHEUS_DIR:-$root/.cache/run/prometheus}
port=${PROMETHEUS_PORT:-9090}
config=${PROMETHEUS_CONFIG:-$root/deploy/prometheus/prometheus.yml}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

ready() { http_ready "$port" /-/ready; }

case "${1:-}" in
start)
  lock "$dir"
  start_server prometheus "$dir" "$port" ready prometheus --config.file="$config" --storage.tsdb.path="$dir/data" \
    --web.listen-address="127.0.0.1:$port" --web.enable-lifecycle
  ;;
stop) stop_server prometheus "$dir" ;;
*)
  sed -n '2,/^set /p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//' >&2
  exit 2
  ;;
esac
