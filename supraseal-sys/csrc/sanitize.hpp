// Declarations that the two files of sanitize.sh's program share.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "../wrapper.h"

inline void expect(cuzk_status status, int32_t code, const char *what) {
    if (status.code != code) {
        std::fprintf(stderr, "%s: expected status %d, got %d: %s\n", what, code, status.code,
                     status.message);
        std::exit(1);
    }
}

// Runs proofs from three threads on doubles of a device: with all points resident,
// with as many streamed as possible, and on a device that is lost in between.
void prove_on_doubles(gpu_resources *resources);
