#!/bin/sh
# pip-install.sh FOLDER REQUIREMENTS: installs pinned packages of the Python
# registry into FOLDER, and prints its absolute path. Does nothing when exactly
# they are there. Other files of FOLDER stay. Needs python3 and pip.
set -eu
requirements=$2
# Absolute, because cargo runs build scripts in another folder.
mkdir -p "$1"
folder=$(cd "$1" && pwd)

if ! cmp -s "$requirements" "$folder/installed.txt"; then
    if ! python3 -m pip --version > /dev/null 2>&1; then
        echo "pip-install: no pip (on Debian: apt-get install python3-pip)" >&2
        exit 1
    fi
    # --upgrade puts whole folders of a version before out of the way.
    python3 -m pip install --quiet --root-user-action=ignore --no-deps --require-hashes --only-binary :all: --upgrade \
        --target "$folder" -r "$requirements" >&2
    # Last, so that an interrupted installation is done again.
    cp "$requirements" "$folder/installed.txt"
fi
echo "$folder"
