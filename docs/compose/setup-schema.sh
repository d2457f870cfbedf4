#!/bin/sh
# Temporal's own two databases. Can be run again.
set -eu
for database in temporal temporal_visibility; do
  case $database in
    temporal) schema=temporal ;;
    *) schema=visibility ;;
  esac
  tool() { temporal-sql-tool --plugin postgres12 --endpoint postgres --port 5432 --user "$SQL_USER" --password "$SQL_PASSWORD" --database "$database" "$@"; }
  tool create || true
  # A database that has a version already has been set up.
  tool setup-schema -v 0.0 || true
  tool update-schema -d "/etc/temporal/schema/postgresql/v12/$schema/versioned"
done
