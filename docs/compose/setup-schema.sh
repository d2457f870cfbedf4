#!/bin/sh
# Creates Temporal's own two databases. It can be run again: existing databases and schema versions are not changed.
set -eu
tool() { temporal-sql-tool --plugin postgres12 --endpoint postgres --port 5432 --user "$SQL_USER" --password "$SQL_PASSWORD" --database "$@"; }
set_up() { # DATABASE SCHEMA
  tool "$1" create-database
  tool "$1" setup-schema --version 0.0
  tool "$1" update-schema --schema-dir "/etc/temporal/schema/postgresql/v12/$2/versioned"
}
set_up temporal temporal
set_up temporal_visibility visibility
