#!/bin/sh
# Checks that src/bindings.rs is what bindgen makes of wrapper.h, or with
# --write makes it so. Needs libclang; without it the check is skipped with a
# message, unless CUZK_REQUIRE_LIBCLANG is set, as it should be in CI.
set -eu
cd "$(dirname "$0")"

have_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    command -v llvm-config >/dev/null 2>&1 && return 0
    ldconfig -p 2>/dev/null | grep -q 'libclang[-.0-9]*\.so' && return 0
    ls /usr/lib/llvm-*/lib/libclang*.so* >/dev/null 2>&1
}

if ! have_libclang; then
    message="check-bindings: no libclang (on Debian: apt-get install libclang-14-dev)"
    if [ -n "${CUZK_REQUIRE_LIBCLANG:-}" ]; then
        echo "$message" >&2
        exit 1
    fi
    echo "$message; skipped" >&2
    exit 0
fi

if [ "${1:-}" = "--write" ]; then
    export CUZK_WRITE_BINDINGS="$PWD/src/bindings.rs"
fi
exec cargo test --release --locked -p supraseal-sys --features bindgen --test bindings
