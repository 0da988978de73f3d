#!/bin/sh
# Install chromium and its driver for the tests of report.html, if run as root on Debian. Prints whether these tests will run in
# a browser. Always exits with status 0.
set -u
log=${CI_BROWSER_LOG:-/var/log/cocos-ci-browser.log}
: >"$log" 2>/dev/null || log=$(mktemp)
has_browser() { command -v chromium >/dev/null && command -v chromedriver >/dev/null; }
if ! has_browser && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        chromium chromium-driver; } >>"$log" 2>&1
fi
if has_browser; then
    echo "report.html is tested in a browser: $(chromium --version 2>/dev/null)"
else
    echo "REPORT.HTML IS NOT TESTED IN A BROWSER: chromium is not installed (log: $log)"
fi
