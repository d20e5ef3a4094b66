#!/bin/sh
# Installs the pinned libclang into a folder (target/libclang unless another is
# named) and prints the folder of libclang.so, for the variable LIBCLANG_PATH.
# For bindgen, on machines without LLVM. Needs python3 and pip.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$("$here/pip-install.sh" "${1:-$here/../target/libclang}" "$here/libclang-requirements.txt")
echo "$folder/clang/native"
