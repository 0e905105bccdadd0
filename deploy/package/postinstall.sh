#!/bin/sh
# Creates the user, and restarts the service if it is running. The first installation does not start it, because its
# brokers must be configured first. DPKG_ROOT is set if dpkg installs into a different root directory; rpm uses chroot
# instead.
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
