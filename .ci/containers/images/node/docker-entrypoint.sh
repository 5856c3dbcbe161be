#!/bin/sh
set -e
# Anything that is no command is an argument of Node.js, as in the official image.
if [ "${1#-}" != "$1" ] || [ -z "$(command -v "$1")" ]; then set -- node "$@"; fi
exec "$@"
