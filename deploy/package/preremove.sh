#!/bin/sh
# Stops the service if the package goes away and is not replaced: dpkg says "remove" then. State, log and user
# remain.
set -e
case "$1" in
remove)
  if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
    systemctl disable --now rewardwatch.service
  fi
  ;;
esac
