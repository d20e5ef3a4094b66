#!/bin/sh
# Checks that include/cuzk.h equals the output of cbindgen for src. With --write it writes
# that output there.
set -eu
cd "$(dirname "$0")"

if [ "${1:-}" = "--write" ]; then
    export CUZK_WRITE_HEADER="$PWD/include/cuzk.h"
fi
# With the features of the whole workspace, so that little is built twice.
exec cargo test --release --locked --workspace --test abi -- the_header_is_current
