# Sourced by run: the checks, in parts that can run alone. Each leaves the project running with two ready replicas.

caller() { "${inside[@]}" node "$here/caller.mjs" "$@"; }
web() { "${inside[@]}" curl -sS --max-time 20 "$@"; }
base=http://127.0.0.1:3000
ready() { web "$base/health/ready" | grep -F '"status":"ok","stopping":false'; }
status_is() { [ "$(web -o /dev/null -w '%{http_code}' "${@:2}")" = "$1" ]; }
eventually() { for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return 0; sleep 0.2; done; echo "not within a minute: $*"; return 1; }
replicas() { compose ps --quiet service; }
address_of() { docker inspect --format "{{(index .NetworkSettings.Networks \"channel-transcripts_$2\").IPAddress}}" "$1"; }
replica_ready() { # asks the replica itself, which is earlier than Docker's next health check
  local address
  address=$(address_of "$1" front)
  [ -n "$address" ] && status_is 200 "http://$address:3000/health/ready"
}
explain_lost_calls() { # the replicas that the proxy tried, and what they logged
  compose logs --no-color --no-log-prefix proxy | grep '"status":5' | tail -n 6 | tee "$RUN/lost"
  sed -n 's/.*"requestId":"\([^"]*\)".*/\1/p' "$RUN/lost" >"$RUN/ids"
  compose logs --no-color --no-log-prefix service | grep -F -f "$RUN/ids" | tail -n 6
}
under_load() { # under_load COMMAND...: no call is lost while it runs and for 4 seconds after
  # Without the function caller, so that $! is the process of nsenter, which becomes Node.
  "${inside[@]}" node "$here/caller.mjs" load "$key" >"$RUN/load" 2>&1 {lock}>&- &
  local loader=$! code=0
  record loader "$loader"
  sleep 2
  "$@" >"$RUN/command" 2>&1 || code=$?
  [ "$code" = 0 ] || tail -n 5 "$RUN/command"
  sleep 4
  kill -TERM "$loader"
  wait "$loader" || code=$?
  rm "$RUN/loader.pid"
  [ "$code" = 0 ] || explain_lost_calls
  cat "$RUN/load"
  return "$code"
}

replace_each() { # the upgrade without an outage of docs/deployment.md
  local before one
  before=$(replicas)
  compose up --detach --no-deps --no-recreate --scale service=4 service || return 1
  for one in $(replicas); do eventually replica_ready "$one" || return 1; done
  sleep 3 # until nginx has resolved the name again
  for one in $before; do docker stop "$one" && docker rm "$one" || return 1; done
}

nothing_remains() {
  compose down --volumes --remove-orphans && [ -z "$(docker ps --all --quiet)" ] && [ -z "$(docker volume ls --quiet)" ] \
    && [ -z "$(docker network ls --quiet --filter type=custom)" ]
}

small() { docker compose --progress quiet -f deploy/small/docker-compose.yml -f .ci/containers/checks.yml "$@"; }
part_small() {
  step 'the small set, and the image alone'
  local small_base=http://127.0.0.1:3100 alone_base=http://127.0.0.1:3200 small_key alone_key
  sed "s/^POSTGRES_PASSWORD=.*/POSTGRES_PASSWORD=$password/; s/^PORT=.*/PORT=3100/" deploy/small/.env.example >deploy/small/.env
  printf '%s\n' YOUTUBE_BASE_URL=http://youtube:4000 SHUTDOWN_DELAY_SECONDS=0 >>deploy/small/.env
  in_small() { small exec -T service "$@"; }
  in_alone() { docker exec alone "$@"; }
  new_key() { # new_key IN: an organization and its key
    "$1" node dist/cli.js org create --name checks --plan pro --json >/dev/null
    "$1" node dist/cli.js key issue checks --json | sed -n 's/.*"key":"\([^"]*\)".*/\1/p'
  }
  fetches() { web -H "Authorization: Bearer $2" "$1/channels/$3/transcripts?limit=2" | grep -o '"total":2,"succeeded":2.*"fetched":2'; }
  uses() { web -H "Authorization: Bearer $2" "$1/usage" | grep -o "\"used\":$3,"; }
  small_ready() { small up --detach --wait --wait-timeout 120 || { small logs --no-color --tail 12; return 1; }; }

  check 'small: docker compose up' small_ready
  small_key=$(new_key in_small)
  check 'small: a call' fetches "$small_base" "$small_key" @tidewater
  dump() { small exec -T postgres pg_dump --username=postgres --format=custom channel_transcripts >"$RUN/transcripts.dump"; }
  check 'small: a backup' dump
  check 'small: a call after the backup' fetches "$small_base" "$small_key" @bench-2x20
  restore() { # as in docs/deployment.md
    small stop service && small exec -T postgres pg_restore --username=postgres --clean --if-exists --single-transaction \
      --dbname=channel_transcripts <"$RUN/transcripts.dump" && small_ready
  }
  check 'small: a restore' restore
  check 'small: the usage is that of the backup' uses "$small_base" "$small_key" 2
  down_up() { small down && small_ready && uses "$small_base" "$small_key" 2; }
  check 'small: docker compose down, up keeps the data' down_up

  alone() { # alone VOLUME: the image with the embedded database, as in docs/deployment.md
    docker run --detach --init --read-only --cap-drop ALL --security-opt no-new-privileges --name alone --volume "$1:/data" \
      --publish 127.0.0.1:3200:3000 --stop-timeout 60 --network channel-transcripts-small_front \
      --env-file deploy/small/.env --env PORT=3000 channel-transcripts && eventually status_is 200 "$alone_base/health/ready"
  }
  stop_alone() { docker stop alone && [ "$(docker inspect --format '{{.State.ExitCode}}' alone)" = 0 ] && docker rm alone; }
  check 'alone: the image starts with a database in its volume' alone one
  alone_key=$(new_key in_alone)
  check 'alone: a call' fetches "$alone_base" "$alone_key" @tidewater
  copy() { # to another volume, as in docs/deployment.md
    stop_alone && docker run --rm --volume one:/data channel-transcripts tar -C /data -c . >"$RUN/transcripts.tar" &&
      docker run --rm --interactive --volume two:/data channel-transcripts tar -C /data -x <"$RUN/transcripts.tar"
  }
  check 'alone: it stops with 0, and its volume is copied' copy
  restored() { alone two && uses "$alone_base" "$alone_key" 2; }
  check 'alone: it starts with the copy, which has the usage' restored
  killed() { docker kill alone && docker rm alone && alone two && uses "$alone_base" "$alone_key" 2; }
  check 'alone: it starts after a kill, with the usage' killed
  removed() { stop_alone && docker volume rm one two && small down --volumes; }
  check 'small and alone: nothing remains' removed
}

part_calls() {
  step 'calls'
  summary() { caller one "$key" "$1" | tee "$RUN/summary" | grep -F "$2"; }
  check 'a call of 25 videos' summary '/channels/@harbourlight/transcripts' '"total":25,"succeeded":17,"failed":8,"cached":0,"fetched":17'
  check 'the same from the cache' summary '/channels/@harbourlight/transcripts' '"cached":17,"fetched":0'
  # 100 videos of an hour, half an hour and some minutes: the texts are larger and smaller than a socket's buffer.
  for path in '@bench-100x1500' '@bench-100x785' '@bench-100x100'; do
    path="/channels/$path/transcripts?limit=100"
    check 'a long response is complete' caller one "$key" "$path"
    check 'a long response from the cache is complete' caller one "$key" "$path"
    check 'a long compressed response is complete' caller one "$key" "$path" accept-encoding=gzip
    check 'a long response as lines is complete' caller one "$key" "$path" accept=application/x-ndjson
  done
  check 'the transcript of a video' caller one "$key" '/videos/tw-tea_____/transcript?format=srt'
  check 'the transcript of a video by its raw URL' caller one "$key" '/videos/https://youtu.be/tw-tea_____?si=abc/transcript'
  check 'the transcripts of a playlist' summary '/playlists/UUtidewater_____________/transcripts?limit=2' '"total":2,"succeeded":2'
  check 'the uploads of a channel' caller one "$key" '/channels/@tidewater/uploads?limit=1'
  post() { web --fail -H "Authorization: Bearer $key" -H 'Content-Type: application/json' -H "Accept: $2" -d "$3" "$base$1" | grep -o -F "$4"; }
  check 'the transcripts of a list of videos' post /transcripts application/json '{"videos":["tw-tea_____","tw-bread___"]}' '"total":2,"succeeded":2'
  check 'the tools for assistants' post /mcp 'application/json, text/event-stream' \
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_usage","arguments":{}}}' '"result":'
  authorized() { web --fail -H "Authorization: Bearer $key" "$@"; }
  archive_job() { # creates a job, waits until it has completed, and reads its results
    local id
    id=$(authorized -H 'Content-Type: application/json' -d '{"channel":"@tidewater","limit":2}' "$base/jobs" |
      grep -o 'job_[[:alnum:]_-]*' | head -n 1)
    for _ in $(seq 100); do
      authorized "$base/jobs/$id" | grep -F '"state":"completed"' >/dev/null && break
      sleep 0.2
    done
    authorized "$base/jobs/$id/results" | grep -o -F '"total":2,"succeeded":2'
  }
  check 'an archive job' archive_job
  check '401 without a key' status_is 401 "$base/usage"
  check '/docs and its files are served' status_is 200 "$base/docs/swagger-ui-bundle.js"
  check '/metrics is not passed on' status_is 404 "$base/metrics"
  scraped() { # as Prometheus does with dns_sd_configs
    compose exec -T service node -e "require('node:dns').promises.resolve4('service').then(async (found) => {
      const urls = found.map((address) => 'http://' + address + ':3000/metrics');
      const responses = await Promise.all(urls.map((url) => fetch(url)));
      process.exit(responses.length === 2 && responses.every(({ ok }) => ok) ? 0 : 1);
    })"
  }
  check 'the name of the service leads to /metrics of each replica within the network' scraped
  check 'the doctor runs in a container, and the service would serve' \
    compose run --rm --no-deps -T service node dist/smoke.js @tidewater 2
  both_used() { [ "$(compose logs --no-color --no-log-prefix proxy | sed -n 's/.*"replica":"\([0-9.]*\):3000".*/\1/p' | sort -u | wc -l)" = 2 ]; }
  check 'both replicas were used' both_used
  without_secrets() { compose logs --no-color >"$RUN/logs" 2>&1 && grep -q '"event":"request"' "$RUN/logs" && ! grep -F -e "$password" -e "$key" "$RUN/logs"; }
  check 'no log contains the password or the key' without_secrets
}

part_isolation() {
  step 'isolation'
  confined() { # the first process of a container: not root, without capabilities, on a read-only file system
    compose exec -T "$1" sh -c 'awk "/^Uid:/ && \$2 == 0 { exit 1 } /^CapEff:/ && \$2 !~ /^0+\$/ { exit 1 } /^NoNewPrivs:/ && \$2 != 1 { exit 1 }" /proc/1/status && ! touch /written 2>/dev/null'
  }
  for name in service proxy postgres valkey; do check "$name: no root, no capabilities, a read-only file system" confined "$name"; done
  ports() { [ "$(docker ps --format '{{.Names}} {{.Ports}}' | grep -c -- '->')" = 1 ]; }
  check 'only the proxy has a port on the host' ports
  without_route() { compose exec -T "$1" sh -c '! awk "\$2 == \"00000000\" { found = 1 } END { exit !found }" /proc/net/route'; }
  check 'postgres has no route out' without_route postgres
  check 'valkey has no route out' without_route valkey
  reaches() { echo | compose exec -T proxy busybox nc -w 2 "$1" "$2" >/dev/null; }
  only_replicas() {
    local postgres_address
    postgres_address=$(address_of "$(compose ps --quiet postgres)" back)
    [ -n "$postgres_address" ] && reaches "$(address_of "$(replicas | sed -n 1p)" front)" 3000 && ! reaches "$postgres_address" 5432
  }
  check 'the proxy reaches the replicas, and not postgres' only_replicas
}

part_replicas() {
  step 'replicas that stop and start, under load'
  # In functions that a condition calls, a command that fails does not end the function.
  restart_each() {
    local one
    for one in $(replicas); do docker restart "$one" && eventually replica_ready "$one" || return 1; done
  }
  check 'docker restart, one replica after the other: no call is lost' under_load restart_each
  stop_each() {
    local one
    for _ in $(seq "${ROUNDS:-1}"); do
      for one in $(replicas); do
        docker stop "$one" && [ "$(docker inspect --format '{{.State.ExitCode}}' "$one")" = 0 ] || return 1
        sleep 3 # until nginx has resolved the name again
        docker start "$one" && eventually replica_ready "$one" || return 1
      done
    done
  }
  check 'docker stop of each replica, which exits with 0: no call is lost' under_load stop_each
  check 'new replicas replace the old ones: no call is lost' under_load replace_each
  # The statuses of each try, as in `503, 502 : 200`; `:` is before the one more try with replicas that were resolved anew.
  echo "the proxy's tries: $(compose logs --no-color --no-log-prefix proxy | sed -n 's/.*"replicaStatus":"\([^"]*\)".*/\1/p' | sort | uniq -c | sort -rn | xargs -L 1 | paste -sd ';')"
  crash() {
    local one
    one=$(replicas | sed -n 1p)
    kill -KILL "$(docker inspect --format '{{.State.Pid}}' "$one")" || return 1
    eventually replica_ready "$one" && docker inspect --format 'restarts: {{.RestartCount}}' "$one"
  }
  check 'a killed replica is started again' crash
}

part_rotation() {
  step 'another password of the database'
  sql() { compose exec -T postgres psql --quiet --username=postgres --dbname=channel_transcripts --command="$1"; }
  not_superuser() { [ "$(sql "SELECT rolsuper FROM pg_roles WHERE rolname = 'app'" | sed -n 3p | tr -d ' ')" = f ]; }
  check 'the role of the service is no superuser' not_superuser
  next=$(head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n')
  rotate() { # as in docs/deployment.md
    sql "CREATE ROLE app_2 LOGIN PASSWORD '$next' IN ROLE app" && sql 'ALTER ROLE app_2 SET role = app' || return 1
    sed -i "s/^POSTGRES_USER=$/POSTGRES_USER=app_2/; s/^POSTGRES_PASSWORD=.*/POSTGRES_PASSWORD=$next/; s/^VALKEY_PASSWORD=$/VALKEY_PASSWORD=$password/" .env
    replace_each && sql 'ALTER ROLE app PASSWORD NULL'
  }
  check 'a second role with another password replaces the first one: no call is lost' under_load rotate
  login() { compose exec -T --env PGPASSWORD="$2" postgres psql --host=postgres --username="$1" --dbname=channel_transcripts --command='SELECT'; }
  only_new() { login app_2 "$next" && ! login app "$password"; }
  check 'the new password is accepted, and the old one refused' only_new
  owned_by() { [ "$(sql "SELECT string_agg(DISTINCT tableowner, ' ') AS owners FROM pg_tables WHERE schemaname = 'public'" | sed -n 3p | tr -d ' ')" = "$1" ]; }
  restart_again() { compose restart service && for one in $(replicas); do eventually replica_ready "$one" || return 1; done && ready && owned_by app; }
  check 'the replicas start again with the new password, and all tables still have one owner' restart_again
}

part_dependencies() {
  step 'dependencies that stop and start'
  without_postgres() {
    compose stop postgres && eventually status_is 503 "$base/health/ready" && status_is 200 "$base/health/live" \
      && compose start postgres && eventually ready
  }
  check 'postgres stops and starts: 503 in between, ready afterwards' without_postgres
  without_valkey() {
    compose stop valkey && caller one "$key" '/channels/@tidewater/transcripts' && status_is 200 "$base/health/ready" \
      && compose start valkey && eventually ready
  }
  check 'valkey stops and starts: calls are served in between' without_valkey
}

part_stopping() {
  step 'stopping'
  in_flight() { # the proxy and the replicas stop during a call
    local addresses one
    addresses=$(for one in $(replicas); do address_of "$one" front; done)
    runs() { for one in $addresses; do web "http://$one:3000/metrics" | grep '^ct_calls_in_flight [1-9]' && return 0; done; return 1; }
    caller one "$key" '/channels/@bench-100x400/transcripts?limit=100' >"$RUN/in_flight" 2>&1 {lock}>&- &
    local call=$! code=0
    eventually runs || code=$?
    compose stop proxy service || code=$?
    wait "$call" || code=$?
    cat "$RUN/in_flight"
    return "$code"
  }
  used() { web -H "Authorization: Bearer $key" "$base/usage" | sed -n 's/.*"used":\([0-9]*\).*/\1/p'; }
  before=$(used)
  check 'a call in flight gets its complete response while the proxy and the replicas stop' in_flight
  all_exit_with_0() {
    compose stop && docker ps --all --filter label=com.docker.compose.project=channel-transcripts --format '{{.Names}} {{.Status}}' >"$RUN/ended" \
      && ! grep -v -e youtube -e 'Exited (0)' "$RUN/ended"
  }
  check 'docker compose stop: every container exits with 0' all_exit_with_0
  compose down >/dev/null 2>&1
  check 'docker compose down, up: every container becomes healthy again' compose up --detach --wait --wait-timeout 120
  check 'the usage is still there, with the call that was in flight' test "$(used)" = $((before + 100))
  early_stop() { # a signal before Node handles it
    local one code=0
    one=$(docker run --detach --init --network none --env DATABASE_URL=postgres://app@192.0.2.1/app "$image")
    # 137 is the code of a container that did not exit within the 10 seconds that docker stop waits.
    [ "$(docker inspect --format '{{.State.Running}}' "$one")" = true ] && docker stop --time 10 "$one" \
      && [ "$(docker inspect --format '{{.State.ExitCode}}' "$one")" != 137 ] || code=1
    docker rm --force "$one" >/dev/null
    return "$code"
  }
  check 'a container that is stopped at its start exits at once' early_stop
}
