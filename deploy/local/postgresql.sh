#!/usr/bin/env bash
# Runs a real PostgreSQL on loopback, using Debian's `postgresql` package but not its service. PostgreSQL refuses to run
# as root: if started by root, it runs as the package's `postgres` user, which must be able to access the directory.
#
#   postgresql.sh start [ARG...]   start in the background and return once it is ready; no effect if already
#                                  running; the arguments are passed to the server
#   postgresql.sh stop             stop it, ending client sessions; the data is kept
#
# POSTGRESQL_DIR       data, log, pid file, and ledger.url for retrain.ledger.postgres_url_file
#                      (default .cache/run/postgresql)
# POSTGRESQL_PORT      port                                 (default 15432; 5432 would be the Debian service's)
# POSTGRESQL_PASSWORD  of the user `rewardwatch`, when it is created with its database; letters, digits, hyphens
#                      (default rewardwatch)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/lib.sh"

dir=${POSTGRESQL_DIR:-$root/.cache/run/postgresql}
port=${POSTGRESQL_PORT:-15432}
password=${POSTGRESQL_PASSWORD:-rewardwatch}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)

as_server=()
[ "$(id -u)" != 0 ] || as_server=(setpriv --reuid=postgres --regid=postgres --init-groups)

# The data directory is renamed into place only when complete, so an interrupted start begins again.
init() {
  [ ! -e "$dir/data" ] || return 0
  rm -rf "$dir/new"
  mkdir -m 700 "$dir/new"
  (umask 077 && printf '%s\n' "$password" >"$dir/new/password")
  [ "$(id -u)" != 0 ] || chown -R postgres "$dir/new"
  if ! "${as_server[@]}" test -r "$dir/new/password"; then
    echo "postgresql: the user postgres cannot access $dir; set POSTGRESQL_DIR to a directory whose parents every user can enter" >&2
    return 1
  fi
  "${as_server[@]}" "$bin/initdb" --pgdata="$dir/new/data" --username=rewardwatch --pwfile="$dir/new/password" \
    --auth=scram-sha-256 --encoding=UTF8 --locale=C --no-instructions --no-sync >"$dir/initdb.log"
  echo 'CREATE DATABASE rewardwatch' |
    "${as_server[@]}" "$bin/postgres" --single -D "$dir/new/data" postgres >>"$dir/initdb.log"
  mv "$dir/new/data" "$dir/data"
  rm -rf "$dir/new"
}

ready() { "$bin/pg_isready" -q -h 127.0.0.1 -p "$port"; }

case "${1:-}" in
start)
  lock "$dir"
  init
  (umask 077 && echo "postgres://rewardwatch:$password@127.0.0.1:$port/rewardwatch?sslmode=disable" >"$dir/ledger.url")
  start_server postgresql "$dir" "$port" ready "${as_server[@]}" "$bin/postgres" -D "$dir/data" -p "$port" \
    -c listen_addresses=127.0.0.1 -c unix_socket_directories= "${@:2}"
  ;;
stop) stop_server postgresql "$dir" INT ;;
*)
  sed -n '2,/^set /p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//' >&2
  exit 2
  ;;
esac
