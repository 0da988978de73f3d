#!/bin/sh
# Makes a browser available for the tests of report.html (as root, on Debian): installs chromium and its driver. Always exits 0,
# and says in a line whether the run will exercise the page.
set -u
log=${CI_BROWSER_LOG:-/var/log/cocos-ci-browser.log}
: >"$log" 2>/dev/null || log=$(mktemp)
there() { command -v chromium >/dev/null && command -v chromedriver >/dev/null; }
if ! there && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        chromium chromium-driver; } >>"$log" 2>&1
fi
if there; then
    echo "report.html in a browser: $(chromium --version 2>/dev/null)"
else
    echo "REPORT.HTML NOT EXERCISED IN A BROWSER: chromium is not installed (log: $log)"
fi
