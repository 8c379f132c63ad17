#!/bin/sh
# install -m 755 backup.sh /usr/local/bin/
# install -d -m 750 -o backup /srv/backup        # for the user that runs it, who must be able to read /srv/data
#
# Backs up /srv/data into /srv/backup, which many hosts share. It runs only under rlock, which needs the address of the
# server in RLOCK_URL, or as url in /etc/rlock/rlock.toml.
#
# The name of each file begins with the fencing token. Tokens grow, so a job that comes back from the dead, because its
# host was asleep, writes a file of its own that is never the newest one.
set -eu
: "${RLOCK_TOKEN:?start this with: rlock run backup -- $0}"
from=${BACKUP_FROM:-/srv/data} to=${BACKUP_TO:-/srv/backup}

new=$to/$RLOCK_TOKEN.tar.gz
# A backup that fails or is stopped leaves nothing behind.
trap 'rm -f -- "$new.part"' EXIT
trap 'exit 1' HUP INT TERM
tar -czf "$new.part" -C "$from" .
mv "$new.part" "$new"

# Keep the last seven.
find "$to" -name '*.tar.gz' | sort -r | tail -n +8 | while IFS= read -r old; do rm -- "$old"; done
