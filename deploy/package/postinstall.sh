#!/bin/sh
# Creates the user, and restarts a service that runs. A first installation does not start it, as its brokers have to be
# set. DPKG_ROOT is where dpkg installs outside of the running system; rpm changes its root.
set -e
root="${DPKG_ROOT:-}"
if ! grep -q '^rewardwatch:' "$root/etc/passwd"; then
  useradd ${root:+--prefix "$root"} --system --user-group --no-create-home --home-dir /var/lib/rewardwatch \
    --shell /usr/sbin/nologin rewardwatch
fi
if [ -z "$root" ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart rewardwatch.service
fi
