#!/usr/bin/env bash
# Runs the checks that need a card. There are two steps, because a machine with a card
# may have no compiler and no network:
#
#   supraseal-sys/card.sh pack            here: builds, with nvcc (NVCC, PATH), and
#                                         collects the programs in target/card
#   supraseal-sys/card.sh run [FOLDER]    there, with target/card brought along: runs
#                                         them, prints their figures, and leaves the
#                                         logs in FOLDER (target/card/logs)
#
# `run` takes the most important steps first and ends within LIMIT_S seconds (560). A step
# that has no time left is skipped. The last line names the steps that failed or were
# skipped, and the exit code is 1 then.
set -euo pipefail
usage=$(sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0")
cd "$(dirname "$0")/.."
packed=$PWD/target/card

pack() {
    export SUPRASEAL_CUDA_ARCH=${SUPRASEAL_CUDA_ARCH:-sm_90}
    rm -rf "$packed"
    mkdir -p "$packed"
    # The command line is built for its own tests, too.
    local executable
    executable=$(cargo test --release --workspace --locked --features cuzk/peer-supraseal \
        --test cli --test dual --no-run 2>&1 |
        tee /dev/stderr | sed -n 's/.*Executable tests\/dual.rs (\(.*\))/\1/p')
    cp target/release/cuzk "$packed/cuzk"
    cp "$executable" "$packed/dual"
    strip "$packed/cuzk" "$packed/dual"
    tar -C "$packed" -czf "$packed/programs.tar.gz" cuzk dual
    rm "$packed/cuzk" "$packed/dual"
    # Tests look for their data where they were built.
    pwd > "$packed/root"
    du -sh "$packed"
}

# step NAME SECONDS COMMAND...
step() {
    local name=$1 most=$2 left=$((LIMIT_S - SECONDS)) began=$SECONDS code=0
    shift 2
    if ((left < 20)); then
        echo "== $name: skipped, no time left"
        missed+=("$name")
        return
    fi
    echo "== $name: $*"
    timeout "$((most < left ? most : left))" "$@" > "$logs/$name.log" 2>&1 || code=$?
    tail -n 25 "$logs/$name.log"
    echo "== $name: exit code $code after $((SECONDS - began)) s"
    [ "$code" -eq 0 ] || missed+=("$name")
}

run() {
    LIMIT_S=${LIMIT_S:-560}
    logs=${1:-$packed/logs}
    missed=()
    mkdir -p "$logs"
    tar -C "$packed" -xzf "$packed/programs.tar.gz"
    local root cuzk=$packed/cuzk
    root=$(cat "$packed/root")
    if [ ! -e "$root" ]; then
        mkdir -p "$(dirname "$root")"
        # A broken link may be left there.
        ln -sfn "$PWD" "$root"
    fi
    export FIL_PROOFS_PARAMETER_CACHE=${FIL_PROOFS_PARAMETER_CACHE:-$packed/parameters}
    mkdir -p "$FIL_PROOFS_PARAMETER_CACHE" "$root/target/tmp"
    printf '[gpus]\nmemory_limit = "1GB"\n' > "$packed/small.toml"
    printf '[gpus]\nb_g2 = "cpu"\n' > "$packed/b-g2-cpu.toml"
    step card 20 nvidia-smi
    # CUDA shows no device then, and that is printed.
    step hidden 20 sh -c 'CUDA_VISIBLE_DEVICES= "$0" bench device --runs 1 2>&1 |
        tee /dev/stderr | grep -q "CUDA shows none"' "$cuzk"
    # The self-test, and the CPU's proofs byte for byte. A run of no test succeeds, too.
    step dual 120 sh -c 'CUZK_TEST_CARD=required "$0" a_card_proves --nocapture 2>&1 |
        tee /dev/stderr | grep -q "^test result: ok. [1-9]"' "$packed/dual"
    step porep 150 "$cuzk" bench device --kind porep --runs 9
    step load 120 "$cuzk" bench device-load --kind porep --runs 500
    step porep-streamed 60 "$cuzk" --config "$packed/small.toml" bench device --kind porep --runs 5
    step porep-b-g2-cpu 60 "$cuzk" --config "$packed/b-g2-cpu.toml" bench device-load --kind porep --runs 100
    step winning 40 "$cuzk" bench device --kind winning-post --runs 9
    step shape-24 180 "$cuzk" bench device-shape --size 24 --runs 5
    step shape-25 300 "$cuzk" bench device-shape --size 25 --runs 3
    if ((${#missed[@]})); then
        echo "== failed or skipped: ${missed[*]}"
        exit 1
    fi
}

case ${1:-} in
    pack) pack ;;
    run) shift && run "$@" ;;
    *) printf '%s\n' "$usage" >&2 && exit 2 ;;
esac
