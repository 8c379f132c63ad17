#!/bin/sh
# terraform apply, one at a time for each workspace, also where the backend of the state has no locks. On a terminal it asks
# as it does without rlock. A plan that has waited is made anew: the state may have changed meanwhile.
# The server stands in RLOCK_URL, or as url in /etc/rlock/rlock.toml.
set -eu
workspace=$(terraform workspace show)
exec rlock run --wait 30m --reason "terraform apply by ${USER:-nobody}" "terraform-$workspace" -- terraform apply "$@"
