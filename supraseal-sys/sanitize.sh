#!/bin/sh
# Runs the C++ side under ThreadSanitizer, and under AddressSanitizer with
# UndefinedBehaviorSanitizer and LeakSanitizer. Cargo is used only to find blst's
# source. Needs a C and a C++ compiler with those runtimes.
set -eu
cd "$(dirname "$0")"
CC=${CC:-cc}
CXX=${CXX:-c++}

manifest=$(cargo metadata --format-version 1 --locked |
    grep -o '"manifest_path":"[^"]*/blst-[0-9.]*/Cargo.toml"' | head -n 1 | cut -d '"' -f 4)
blst=$(dirname "$manifest")/blst
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# blst itself is not instrumented: its assembly could not be, and it has no threads.
$CC -O2 -D__BLST_PORTABLE__ -c "$blst/src/server.c" -o "$out/server.o"
$CC -c "$blst/build/assembly.S" -o "$out/assembly.o"

run() {
    $CXX -std=c++17 -O1 -g -Wall -Wextra -pthread -fno-omit-frame-pointer \
        -fsanitize="$1" -fno-sanitize-recover=all -I"$blst/bindings" \
        -Icsrc/fake_cuda -DCUZK_DOUBLE -DCUZK_EMULATED \
        csrc/*.cpp csrc/fake_cuda/*.cpp cuda/emulated.cpp "$out/server.o" "$out/assembly.o" -o "$out/$1"
    TSAN_OPTIONS=halt_on_error=1 ASAN_OPTIONS=detect_leaks=1 "$out/$1"
    echo "sanitize: passed -fsanitize=$1"
}

run thread &
threads=$!
run address,undefined
wait "$threads"
