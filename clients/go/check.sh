#!/usr/bin/env bash
# Everything that the Go module must pass. With CUZK_BINARY it tests against that program,
# too. Arguments are options of `go test`: -short leaves out what takes minutes.
set -euo pipefail
cd "$(dirname "$0")"

unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
    printf 'not formatted as gofmt does: %s\n' "$unformatted" >&2
    exit 1
fi
go vet ./...
go -C internal/generate vet ./...
go -C internal/generate run . -check
# Proofs on a loaded machine take longer than the ten minutes that Go allows by default.
go test -timeout 40m "$@" ./...
