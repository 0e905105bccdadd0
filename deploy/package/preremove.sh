#!/bin/sh
# Stops the service if the package is removed rather than upgraded: dpkg then passes "remove", and rpm 0. State, logs
# and the user are kept.
set -e
case "$1" in
remove | 0)
  if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
    systemctl disable --now rewardwatch.service
  fi
  ;;
esac
