#!/bin/bash
# Like the official image: the first start creates the database over the socket only, as the user postgres.
set -euo pipefail
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA" && chmod 700 "$PGDATA" && chown -R postgres "$PGDATA" /var/run/postgresql
  exec gosu postgres "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username="$POSTGRES_USER" --pwfile=<(echo "${POSTGRES_PASSWORD:?}")
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  pg_ctl -w start -o "-c listen_addresses=''"
  psql --username "$POSTGRES_USER" --dbname postgres --command "CREATE DATABASE \"$POSTGRES_DB\""
  for script in /docker-entrypoint-initdb.d/*.sh; do . "$script"; done
  pg_ctl -m fast -w stop
fi
exec "$@"
