#!/bin/sh
# Stops the service if the package goes away and is not replaced: dpkg says "remove" then, and rpm 0. State, log and user
# remain.
set -e
case "$1" in
remove | 0)
  if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
    systemctl disable --now rewardwatch.service
  fi
  ;;
esac
