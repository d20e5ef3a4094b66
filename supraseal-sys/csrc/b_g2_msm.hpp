// The MSM of the B query in G2, on the CPU, while the device works on the rest of
// the proof. The CPU backend's MSM is in cuzk-kernels.
//
// Algorithm: zero scalars are skipped, and the bases of one scalars are added
// separately (98 % of a Filecoin witness are zeros or ones). The rest goes through
// a Pippenger with signed digits (Bernstein, Doumen, Lange, Oosterwijk, "Faster
// batch forgery identification", eprint 2012/549, section 4). It is cut into tiles
// of one window by one slice of the points.
//
// Invariants: the throttle is raised by one from the first to the last access to
// the inputs, on every exit. The result does not depend on the number of workers. A
// base is read only if its scalar is not zero.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

#include "../wrapper.h"
#include "pool.hpp"

namespace cuzk {

struct MsmInput {
    const blst_p2_affine *bases;
    const blst_fr *scalars; // Montgomery form, reduced
    std::size_t len;
};

// The way in which the Pippenger over `points` points is cut for `workers` workers.
struct Tiling {
    std::size_t window_bits; // 2^(window_bits - 1) buckets a worker
    std::size_t windows;     // window_bits * windows > 255
    std::size_t slices;      // of the points; each has at least 2
};

Tiling choose_tiling(std::size_t points, std::size_t workers);

// `before_work` runs on a worker before each piece of work. An exception from it
// ends the MSM. An empty one is not run.
blst_p2 b_g2_msm(Pool &pool, std::atomic<int> &throttle, const MsmInput &input,
                 const std::function<void()> &before_work = {});

// Computes the MSM for a caller that has raised the throttle already.
blst_p2 b_g2_msm_unraised(Pool &pool, const MsmInput &input,
                          const std::function<void()> &before_work);

} // namespace cuzk
