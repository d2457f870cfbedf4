#!/bin/sh
# Runs once, on an empty volume: our own database, with a role that cannot read Temporal's databases.
set -eu
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<SQL
create role longhaul login password '${LONGHAUL_DB_PASSWORD}';
create database longhaul owner longhaul;
revoke connect on database longhaul from public;
revoke connect on database postgres from public;
SQL
