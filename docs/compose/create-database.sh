#!/bin/sh
# Runs once, on an empty volume. Creates Longhaul's database, with a role that cannot open any other database.
set -eu
psql -v ON_ERROR_STOP=1 -v password="$LONGHAUL_DB_PASSWORD" --username "$POSTGRES_USER" --dbname postgres <<'SQL'
create role longhaul login password :'password';
create database longhaul owner longhaul;
create database temporal_visibility;
revoke connect on database longhaul, postgres, temporal, temporal_visibility, template1 from public;
SQL
