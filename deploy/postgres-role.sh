# Run by the image of PostgreSQL after it has made a new database, whose superuser is POSTGRES_USER. The role of the service owns the
# database and is none. Without a password the superuser logs in within the container only.
psql --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" --set=ON_ERROR_STOP=1 <<'SQL'
\getenv superuser POSTGRES_USER
\getenv database POSTGRES_DB
\getenv role SERVICE_ROLE
\getenv password POSTGRES_PASSWORD
CREATE ROLE :"role" LOGIN PASSWORD :'password';
ALTER DATABASE :"database" OWNER TO :"role";
-- It looks at statements that do not end, also at those of a second role (docs/deployment.md).
GRANT pg_read_all_stats TO :"role";
ALTER ROLE :"superuser" PASSWORD NULL;
SQL
