#!/bin/sh
# Installs the pinned CUDA compiler into a folder (target/nvcc unless another is
# named) and prints the path of nvcc, for the variable NVCC. For machines that
# build the feature `cuda` without a CUDA installation. Needs python3 and pip.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../target/nvcc}
# Absolute, because cargo runs build scripts in another folder.
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
toolkit=$folder/nvidia/cu13

if ! cmp -s "$here/nvcc-requirements.txt" "$folder/installed.txt"; then
    if ! python3 -m pip --version > /dev/null 2>&1; then
        echo "fetch-nvcc: no pip (on Debian: apt-get install python3-pip)" >&2
        exit 1
    fi
    rm -rf "$folder/nvidia"
    python3 -m pip install --quiet --root-user-action=ignore --no-deps --require-hashes --only-binary :all: --upgrade \
        --target "$folder" -r "$here/nvcc-requirements.txt" >&2
    # nvcc links from lib64, which the package calls lib; other crates' build
    # scripts look where installers put it.
    ln -sfn lib "$toolkit/lib64"
    mkdir -p "$toolkit/targets/x86_64-linux"
    ln -sfn ../../lib "$toolkit/targets/x86_64-linux/lib"
    ln -sfn ../../include "$toolkit/targets/x86_64-linux/include"
    # Last, so that an interrupted installation is done again.
    cp "$here/nvcc-requirements.txt" "$folder/installed.txt"
fi
echo "$toolkit/bin/nvcc"
