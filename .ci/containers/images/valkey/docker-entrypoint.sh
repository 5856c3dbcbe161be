#!/bin/sh
set -e
if [ "$(id -u)" = 0 ]; then
  find . \! -user valkey -exec chown valkey '{}' +
  exec setpriv --reuid=valkey --regid=valkey --clear-groups -- "$0" "$@"
fi
# The official image is built without the protected mode of Debian's package.
exec "$@" --protected-mode no
