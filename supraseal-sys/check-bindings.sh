#!/bin/sh
# Checks that src/bindings.rs equals the output of bindgen for wrapper.h. With --write
# it writes that output there. Uses the libclang that LIBCLANG_PATH names; without it,
# the pinned one of the Python registry.
set -eu
cd "$(dirname "$0")"

if [ -z "${LIBCLANG_PATH:-}" ]; then
    LIBCLANG_PATH=$(./fetch-libclang.sh)
    export LIBCLANG_PATH
    # That package is the library alone: stddef.h and the like are the C
    # compiler's.
    BINDGEN_EXTRA_CLANG_ARGS="-isystem $("${CC:-cc}" -print-file-name=include) ${BINDGEN_EXTRA_CLANG_ARGS:-}"
    export BINDGEN_EXTRA_CLANG_ARGS
fi

if [ "${1:-}" = "--write" ]; then
    export CUZK_WRITE_BINDINGS="$PWD/src/bindings.rs"
fi
# With the features of the whole workspace, so that little is built twice. The C++ side is built for
# nothing but to be linked.
profile=${CUZK_PROFILE:-release}
exec cargo test --profile "$profile" --config "profile.$profile.package.supraseal-sys.opt-level = 0" --locked --workspace --features supraseal-sys/bindgen --test bindings
