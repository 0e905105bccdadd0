#!/usr/bin/env bash
# Runs a real Kerberos KDC on loopback, using Debian's `krb5-kdc` package but not its service.
# The realm is REWARDWATCH.TEST.
#
#   kerberos.sh start               start in the background and return once it is ready; no effect if already running
#   kerberos.sh keytab NAME FILE    give the principal NAME new keys, and write them to FILE
#   kerberos.sh stop                stop it; the data is kept
#
# KERBEROS_DIR   data, log, pid file, and krb5.conf for clients  (default .cache/run/kerberos)
# KERBEROS_PORT  port                                            (default 10088; 88 would be that of the Debian service)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/lib.sh"

dir=${KERBEROS_DIR:-$root/.cache/run/kerberos}
port=${KERBEROS_PORT:-10088}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
export KRB5_CONFIG=$dir/krb5.conf KRB5_KDC_PROFILE=$dir/kdc.conf
PATH=$PATH:/usr/sbin

admin() { kadmin.local -q "$1" >>"$dir/admin.log" 2>&1; }

# The database is renamed into place only when complete, so an interrupted start begins again.
init() {
  cat >"$KRB5_CONFIG" <<END
[libdefaults]
  default_realm = REWARDWATCH.TEST
  dns_lookup_kdc = false
  rdns = false
  udp_preference_limit = 1
[realms]
  REWARDWATCH.TEST = {
    kdc = 127.0.0.1:$port
  }
END
  cat >"$KRB5_KDC_PROFILE" <<END
[kdcdefaults]
  kdc_listen = 127.0.0.1:$port
  kdc_tcp_listen = 127.0.0.1:$port
[realms]
  REWARDWATCH.TEST = {
    database_name = $dir/principals
    key_stash_file = $dir/stash
    supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
  }
[logging]
  kdc = FILE:$dir/requests.log
END
  [ ! -e "$dir/complete" ] || return 0
  rm -f "$dir"/principals* "$dir/stash"
  kdb5_util create -s -r REWARDWATCH.TEST -P "$(head -c 24 /dev/urandom | base64)" >"$dir/admin.log" 2>&1
  touch "$dir/complete"
}

ready() { listening "$port"; }

case "${1:-}" in
start)
  lock "$dir"
  init
  start_server kerberos "$dir" "$port" ready krb5kdc -n -P "$dir/krb5kdc.pid"
  ;;
keytab)
  admin "addprinc -randkey $2"
  admin "ktadd -k $3 $2"
  ;;
stop) stop_server kerberos "$dir" ;;
*)
  sed -n '2,/^set /p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//' >&2
  exit 2
  ;;
esac
