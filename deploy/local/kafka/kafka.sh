#!/usr/bin/env bash
# Runs a real Apache Kafka broker on loopback, from Maven Central, on Java 17 or newer.
#
#   kafka.sh fetch              download the jars (done once)
#   kafka.sh start              fetch, start in the background and return once it is ready; no effect if already running
#   kafka.sh topic NAME [N]     create a topic with N partitions (default 1) unless it exists
#   kafka.sh stop               stop it; the data is kept
#
# KAFKA_DIR              data, log and pid file        (default .cache/run/kafka)
# KAFKA_PORT             port for clients              (default 9092)
# KAFKA_ADVERTISED       address advertised to clients (default 127.0.0.1:KAFKA_PORT)
# KAFKA_CONTROLLER_PORT  port of the controller        (default 19092; 9093 would be Alertmanager's)
# KAFKA_LIB              where the jars are            (default .cache/kafka/lib)
# KAFKA_PROPERTIES       file with additional settings (default none)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
. "$here/../lib.sh"

lib=${KAFKA_LIB:-$root/.cache/kafka/lib}
dir=${KAFKA_DIR:-$root/.cache/run/kafka}
port=${KAFKA_PORT:-9092}
advertised=${KAFKA_ADVERTISED:-127.0.0.1:$port}
controller_port=${KAFKA_CONTROLLER_PORT:-19092}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

# The broker runs for minutes, so the optimizing compiler would not pay off.
java=("${JAVA_HOME:+$JAVA_HOME/bin/}java" -Xms128m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.awt.headless=true
  "-Dlog4j2.configurationFile=$here/log4j2.xml" -cp "$lib/*")

# The jars are complete once the stamp of this pom.xml is next to them, so an interrupted download is repeated.
fetch() {
  local stamp
  stamp=$(sha256sum <"$here/pom.xml" | cut -c1-16)
  mkdir -p "$(dirname "$lib")"
  exec 8>"$lib.lock"
  flock 8
  if [ ! -e "$lib/.complete-$stamp" ]; then
    rm -rf "$lib"
    mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$lib" 8>&-
    touch "$lib/.complete-$stamp"
  fi
  exec 8>&-
}

# Any 16 bytes in base64 can serve as the id of a single-broker cluster.
format() {
  sed -e "s#@DATA@#$dir/data#; s#@PORT@#$port#g; s#@ADVERTISED@#$advertised#; s#@CONTROLLER_PORT@#$controller_port#g" \
    "$here/server.properties" ${KAFKA_PROPERTIES:+"$KAFKA_PROPERTIES"} >"$dir/server.properties"
  [ -f "$dir/data/meta.properties" ] ||
    "${java[@]}" -Dlog.level=WARN kafka.tools.StorageTool format --standalone -t cmV3YXJkd2F0Y2gtbG9jYQ -c "$dir/server.properties"
}

# The port accepts connections before the broker is registered; clients need both.
ready() { grep -q 'Kafka Server started' "$dir/kafka.log" && listening "$port"; }

start() {
  fetch
  lock "$dir"
  alive "$dir/kafka.pid" "$dir/" || format
  start_server kafka "$dir" "$port" ready "${java[@]}" kafka.Kafka "$dir/server.properties"
}

topic() {
  fetch
  "${java[@]}" -Dlog.level=WARN org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$port" \
    --create --if-not-exists --topic "$1" --partitions "${2:-1}" --replication-factor 1
}

case "${1:-}" in
fetch | start) "$1" ;;
topic) topic "${@:2}" ;;
stop) stop_server kafka "$dir" ;;
*)
  sed -n '2,/^set /p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//' >&2
  exit 2
  ;;
esac
