#!/usr/bin/env bash
# Tests the page in headless Chromium. It needs `chromium` (Debian's package) and Python.
# CUZK_SKIP_BROWSER=1 skips it, for machines without a browser.
#
# Usage: run.sh [SCREENSHOTS]: a folder for screenshots.
#
# CUZK_PAGE names the built example `page`; without it the example is built. CUZK_BINARY
# names the built program: the page is then also tested with the daemon while it proves.
# CUZK_TEST_PARAMETERS names a folder in which test parameters are kept.
set -euo pipefail
cd "$(dirname "$0")/../../.."

if [ "${CUZK_SKIP_BROWSER:-}" = 1 ]; then
    echo "skipped: CUZK_SKIP_BROWSER is 1"
    exit 0
fi
if ! command -v chromium > /dev/null; then
    echo "chromium is missing: install Debian's package, or set CUZK_SKIP_BROWSER=1" >&2
    exit 1
fi
if [ -z "${CUZK_PAGE:-}" ]; then
    # The features of the whole workspace, so that nothing is built twice.
    cargo build --release --locked --workspace --example page
    CUZK_PAGE=target/release/examples/page
fi

export PYTHONDONTWRITEBYTECODE=1
tests=cuzk-server/tests/page
python3 "$tests/made_up.py" "$CUZK_PAGE" ${1:+"$1/made-up"}
if [ -n "${CUZK_BINARY:-}" ]; then
    parameters=${CUZK_TEST_PARAMETERS:-target/tmp/parameters}
    mkdir -p "$parameters"
    python3 "$tests/real.py" "$CUZK_BINARY" "$parameters" ${1:+"$1/real"}
else
    echo "the daemon itself is left out: CUZK_BINARY does not name the program"
fi
