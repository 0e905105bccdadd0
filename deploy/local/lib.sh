# Shared by the scripts beside it: a server of its own directory, started once, found again and stopped by its pid file.
# Sourced; the caller sets -euo pipefail.

# alive PIDFILE MARK: the process of the pid file lives and is the one that was started. A pid may have been given to
# another process since, which must not be taken for ours, let alone killed; so MARK has to stand in its command line.
alive() {
  local pid
  pid=$(cat "$1" 2>/dev/null) || return 1
  tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "$2"
}

# listening PORT: something accepts connections on the loopback port.
listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# http_ready PORT PATH: the server on the loopback port answers PATH with 200.
http_ready() {
  local status
  exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
  printf 'GET %s HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' "$2" >&3
  read -r -t 5 _ status _ <&3 || status=
  exec 3>&-
  [ "$status" = 200 ]
} 2>/dev/null

# lock DIR: from here to the end of the script nobody else prepares or starts the server of DIR.
lock() {
  exec 9>"$1/lock"
  flock 9
}

# start_server NAME DIR PORT READY COMMAND...: starts the command in the background with DIR/NAME.pid and DIR/NAME.log
# and returns when the function READY holds. A server that runs already is left alone. "DIR/" must stand in the command
# line. The caller holds the lock, which is not handed down to the server.
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

# wait_port_free NAME PORT: a server that was just killed holds its port for a moment; anything longer is somebody else.
wait_port_free() {
  local deadline=$((SECONDS + 10))
  while listening "$2"; do
    if ((SECONDS > deadline)); then
      echo "$1: port $2 is taken by another process" >&2
      return 1
    fi
    sleep 0.1
  done
}

# wait_ready NAME DIR READY: polls for up to two minutes, and fails at once when the process is gone.
wait_ready() {
  local name=$1 dir=$2 ready=$3 deadline=$((SECONDS + 120))
  until "$ready"; do
    if ! kill -0 "$(cat "$dir/$name.pid")" 2>/dev/null || ((SECONDS > deadline)); then
      echo "$name did not become ready; the end of $dir/$name.log:" >&2
      tail -n 40 "$dir/$name.log" >&2
      return 1
    fi
    sleep 0.1
  done
}

# stop_server NAME DIR [SIGNAL]: ends the server by its pid, politely for 30 s, and removes the pid file.
stop_server() {
  local name=$1 dir=$2 signal=${3:-TERM} pid deadline=$((SECONDS + 30))
  if ! alive "$dir/$name.pid" "$dir/"; then
    rm -f "$dir/$name.pid"
    echo "$name does not run"
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
