#!/bin/sh
# Prepare the executor's isolation levels "namespaces" and "docker" for a test run; run it as root on Debian.
# Installs bubblewrap and libseccomp. If no docker engine answers, installs docker.io and debootstrap, starts the daemon and builds the
# image. Prints for each level whether the tests will run at it. Always exits with status 0: the tests skip what is missing.
set -u
here=$(dirname "$0")
docker=${DOCKER_BIN:-docker} # unquoted below: it may be several words, such as "sudo docker"
image=${SANDBOX_DOCKER_IMAGE:-cocos-sandbox}
log=${CI_SANDBOXES_LOG:-/var/log/cocos-ci-sandboxes.log}

give_up() {
    echo "DOCKER LEVEL NOT EXERCISED: $1 (log: $log)"
    exit 0
}
answers() { $docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

: >"$log" 2>/dev/null || log=$(mktemp)
if { ! command -v bwrap || ! ldconfig -p | grep -q libseccomp.so; } >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq bubblewrap libseccomp2; } >>"$log" 2>&1
fi
if command -v bwrap >/dev/null; then
    echo "namespaces level: $(bwrap --version)"
else
    echo "NAMESPACES LEVEL NOT EXERCISED: bubblewrap is not installed (log: $log)"
fi

if ! answers; then
    [ "$(id -u)" = 0 ] || give_up "no docker engine answers, and only root can install one"
    if ! command -v dockerd >/dev/null || ! command -v debootstrap >/dev/null; then
        command -v apt-get >/dev/null || give_up "no docker engine, and no apt-get to install one"
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq docker.io debootstrap; } >>"$log" 2>&1 ||
            give_up "docker.io and debootstrap could not be installed"
    fi
    # The sandboxes have no network, so the daemon needs no bridge and touches no firewall.
    setsid dockerd --iptables=false --ip6tables=false --bridge=none >>"$log" 2>&1 </dev/null &
    tries=60
    until answers; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || give_up "the docker daemon does not start"
        sleep 1
    done
fi
if ! $docker image inspect "$image" >/dev/null 2>&1; then
    if ! command -v debootstrap >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        { apt-get update -qq && apt-get install -y -qq debootstrap; } >>"$log" 2>&1
    fi
    sh "$here/sandbox_image.sh" >>"$log" 2>&1 || give_up "the image could not be built"
fi
echo "docker level: engine $($docker version --format '{{.Server.Version}}'), image $image"
