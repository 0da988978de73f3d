#!/bin/sh
# Build the image of the executor's isolation level "docker": a system with Python and nothing else.
#   scripts/sandbox_image.sh
# Needs a running docker engine. As root on a machine with debootstrap it builds a Debian system, which needs no
# image registry; otherwise it starts from python:3.11-slim.
# SANDBOX_DOCKER_IMAGE names the image (default cocos-sandbox), DOCKER_BIN the client (default docker; "sudo docker" works).
set -eu
docker=${DOCKER_BIN:-docker} # unquoted below: it may be several words, such as "sudo docker"
image=${SANDBOX_DOCKER_IMAGE:-cocos-sandbox}

$docker version --format '{{.Server.Version}}' >/dev/null || { echo "no docker engine answers; start the daemon, or join the docker group" >&2; exit 1; }

if ! command -v debootstrap >/dev/null || [ "$(id -u)" != 0 ]; then
    exec $docker build --tag "$image" - <<'DOCKERFILE'
FROM python:3.11-slim
ENTRYPOINT []
DOCKERFILE
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=python3,libpython3-stdlib bookworm "$root" >&2
rm -rf "$root"/var/cache/apt "$root"/var/lib/apt/lists "$root"/usr/share/doc "$root"/usr/share/man "$root"/usr/share/locale
tar -C "$root" -c . | $docker import - "$image"
