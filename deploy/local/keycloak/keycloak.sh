#!/usr/bin/env bash
# Runs a real Keycloak on loopback, from Maven Central, on Java 17 or 21. It keeps its data in memory.
#
#   keycloak.sh fetch   download, unpack and prepare it (done once)
#   keycloak.sh start   fetch, start in the background and return once it is ready; no effect if already running
#   keycloak.sh stop    stop it; the data is lost
#
# KEYCLOAK_DIR       log and pid file                     (default .cache/run/keycloak)
# KEYCLOAK_PORT      port                                 (default 8081)
# KEYCLOAK_PASSWORD  password of the administrator admin  (default admin)
# KEYCLOAK_HOME      where it is unpacked                 (default .cache/keycloak/home)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
. "$here/../lib.sh"

home=${KEYCLOAK_HOME:-$root/.cache/keycloak/home}
dir=${KEYCLOAK_DIR:-$root/.cache/run/keycloak}
port=${KEYCLOAK_PORT:-8081}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

# It is complete once it contains the stamp of pom.xml, so an interrupted download is repeated. The build does the work
# of the first start in advance.
fetch() {
  local stamp parts
  stamp=$(sha256sum <"$here/pom.xml" | cut -c1-16)
  mkdir -p "$(dirname "$home")"
  exec 8>"$home.lock"
  flock 8
  if [ ! -e "$home/.complete-$stamp" ]; then
    parts=$home.parts
    rm -rf "$home" "$parts"
    mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$parts" 8>&-
    (cd "$parts" && jar xf keycloak-quarkus-dist-*.zip)
    rm "$parts"/*.zip
    mv "$parts"/keycloak-* "$home"
    rmdir "$parts"
    chmod +x "$home"/bin/*.sh
    "$home/bin/kc.sh" build --db=dev-mem >"$home/build.log" 2>&1 8>&- || {
      cat "$home/build.log" >&2
      return 1
    }
    touch "$home/.complete-$stamp"
  fi
  exec 8>&-
}

ready() { http_ready "$port" /realms/master; }

# Bypasses kc.sh, which would run the server as a child process, so that the pid is the server's.
start() {
  READY_WITHIN=${READY_WITHIN:-600} # it takes half a minute of CPU
  fetch
  lock "$dir"
  export KC_BOOTSTRAP_ADMIN_USERNAME=admin KC_BOOTSTRAP_ADMIN_PASSWORD=${KEYCLOAK_PASSWORD:-admin}
  mkdir -p "$dir/tmp"
  start_server keycloak "$dir" "$port" ready "${JAVA_HOME:+$JAVA_HOME/bin/}java" -Xms64m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.awt.headless=true \
    -Dkc.home.dir="$home" -Djboss.server.config.dir="$home/conf" -Djava.util.logging.manager=org.jboss.logmanager.LogManager \
    -Dpicocli.disable.closures=true -Djava.io.tmpdir="$dir/tmp" --add-opens=java.base/java.util=ALL-UNNAMED \
    --add-opens=java.base/java.util.concurrent=ALL-UNNAMED --add-opens=java.base/java.security=ALL-UNNAMED \
    -cp "$home/lib/quarkus-run.jar" io.quarkus.bootstrap.runner.QuarkusEntryPoint \
    start --optimized --http-enabled=true --http-host=127.0.0.1 --http-port="$port" --hostname-strict=false --cache=local
}

case "${1:-}" in
fetch | start) "$1" ;;
stop) stop_server keycloak "$dir" ;;
*)
  sed -n '2,/^set /p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//' >&2
  exit 2
  ;;
esac
