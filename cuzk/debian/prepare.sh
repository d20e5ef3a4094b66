#!/usr/bin/env bash
# Builds the program and makes what the package has beside it, in target/deb: the manual
# pages, the completions, and the units with the package's path of the program.
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --release --workspace --bin cuzk --locked
made=target/deb
rm -rf "$made"
mkdir -p "$made"/{man,completions,units}

cuzk=target/release/cuzk
"$cuzk" manual "$made/man"
gzip -9n "$made"/man/*.1
"$cuzk" completions bash > "$made/completions/cuzk"
"$cuzk" completions zsh > "$made/completions/_cuzk"
"$cuzk" completions fish > "$made/completions/cuzk.fish"
for unit in configs/systemd/*.service configs/systemd/*.socket; do
    sed 's:/usr/local/bin/cuzk:/usr/bin/cuzk:' "$unit" > "$made/units/${unit##*/}"
done
cp configs/systemd/cuzk.sysusers.conf "$made/units/cuzk.conf"
