#!/bin/sh
# Installs the pinned CUDA compiler into a folder (target/nvcc unless another is
# named) and prints the path of nvcc, for the variable NVCC. For machines that
# build the feature `cuda` without a CUDA installation. Needs python3 and pip.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$("$here/pip-install.sh" "${1:-$here/../target/nvcc}" "$here/nvcc-requirements.txt")
toolkit=$folder/nvidia/cu13

# nvcc links from lib64, which the package calls lib; other crates' build
# scripts look where installers put it.
ln -sfn lib "$toolkit/lib64"
mkdir -p "$toolkit/targets/x86_64-linux"
ln -sfn ../../lib "$toolkit/targets/x86_64-linux/lib"
ln -sfn ../../include "$toolkit/targets/x86_64-linux/include"
echo "$toolkit/bin/nvcc"
