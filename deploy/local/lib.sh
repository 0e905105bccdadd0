# Functions for the scripts in this directory: start one server per directory, and find and stop it by its pid file.
# This file is sourced; the caller sets -euo pipefail.

# alive PIDFILE MARK: whether the process in the pid file is still running. The pid may have been reused by another
# process, which must not be killed, so MARK must occur in the command line of the process.
alive() {
  local pid
  pid=$(cat "$1" 2>/dev/null) || return 1
  tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "$2"
}

# listening PORT: whether a process accepts connections on the loopback port.
listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# http_ready PORT PATH: whether the server on the loopback port returns 200 for PATH.
http_ready() {
  local status
  exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
  printf 'GET %s HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' "$2" >&3
  read -r -t 5 _ status _ <&3 || status=
  exec 3>&-
  [ "$status" = 200 ]
} 2>/dev/null

# lock DIR: prevents other scripts from preparing or starting the server in DIR until this script ends.
lock() {
  exec 9>"$1/lock"
  flock 9
}

# start_server NAME DIR PORT READY COMMAND...: starts the command in the background with DIR/NAME.pid and DIR/NAME.log,
# and returns once the function READY succeeds. Has no effect if the server is already running. "DIR/" must occur in the
# command line. The caller holds the lock, which the server does not inherit.
start_server() {
  local name=$1 dir=$2 port=$3 ready=$4
  shift 4
  if ! alive "$dir/$name.pid" "$dir/"; then
    wait_port_free "$name" "$port"
    setsid "$@" </dev/null >"$dir/$name.log" 2>&1 9>&- &
    echo $! >"$dir/$name.pid"
  fi
  wait_ready "$name" "$dir" "$ready"
  echo "$name ready on 127.0.0.1:$port, pid $(cat "$dir/$name.pid"), log $dir/$name.log"
}

# wait_port_free NAME PORT: waits up to 10 s for a killed server to release its port; if it is still in use, another
# process has it.
wait_port_free() {
  local deadline=$((SECONDS + 10))
  while listening "$2"; do
    if ((SECONDS > deadline)); then
      echo "$1: port $2 is used by another process" >&2
      return 1
    fi
    sleep 0.1
  done
}

# wait_ready NAME DIR READY: polls for READY_WITHIN seconds (300, as servers start while tests are compiled), and fails
# immediately if the process has exited.
wait_ready() {
  local name=$1 dir=$2 ready=$3 deadline=$((SECONDS + ${READY_WITHIN:-300}))
  until "$ready"; do
    if ! kill -0 "$(cat "$dir/$name.pid")" 2>/dev/null || ((SECONDS > deadline)); then
      echo "$name did not become ready; last lines of $dir/$name.log:" >&2
      tail -n 40 "$dir/$name.log" >&2
      return 1
    fi
    sleep 0.1
  done
}

# stop_server NAME DIR [SIGNAL]: signals the server, kills it after 30 s, and removes the pid file.
stop_server() {
  local name=$1 dir=$2 signal=${3:-TERM} pid deadline=$((SECONDS + 30))
  if ! alive "$dir/$name.pid" "$dir/"; then
    rm -f "$dir/$name.pid"
    echo "$name is not running"
    return 0
  fi
  pid=$(cat "$dir/$name.pid")
  kill "-$signal" "$pid"
  while kill -0 "$pid" 2>/dev/null; do
    if ((SECONDS > deadline)); then
      kill -9 "$pid"
      break
    fi
    sleep 0.1
  done
  rm -f "$dir/$name.pid"
  echo "$name stopped"
}
