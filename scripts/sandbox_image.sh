#!/bin/sh
# Builds the image of the executor's level "docker": a system with nothing but Python. Needs an engine that answers.
#   scripts/sandbox_image.sh              from python:3.11-slim where a registry is reached, else by debootstrap (root, Debian)
# SANDBOX_DOCKER_IMAGE names the image (default cocos-sandbox), DOCKER_BIN the client (default docker).
set -eu
docker=${DOCKER_BIN:-docker}
image=${SANDBOX_DOCKER_IMAGE:-cocos-sandbox}

"$docker" version --format '{{.Server.Version}}' >/dev/null || { echo "no docker engine answers" >&2; exit 1; }

if ! command -v debootstrap >/dev/null || [ "$(id -u)" != 0 ]; then
    exec "$docker" build --tag "$image" - <<'DOCKERFILE'
FROM python:3.11-slim
ENTRYPOINT []
DOCKERFILE
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=python3,libpython3-stdlib bookworm "$root" >&2
rm -rf "$root"/var/cache/apt "$root"/var/lib/apt/lists "$root"/usr/share/doc "$root"/usr/share/man "$root"/usr/share/locale
tar -C "$root" -c . | "$docker" import - "$image"
