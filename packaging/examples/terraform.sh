#!/bin/sh
# terraform apply, one at a time for each workspace, even if the state backend has no locks. On a terminal it asks as it
# does without rlock. It plans after it has waited, because the state may have changed in the meantime.
# The server is in RLOCK_URL, or in url in /etc/rlock/rlock.toml.
set -eu
workspace=$(terraform workspace show)
exec rlock run --wait 30m --reason "terraform apply by ${USER:-nobody}" "terraform-$workspace" -- terraform apply "$@"
