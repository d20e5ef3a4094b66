// The MSMs of one proof on a device, and their results.
//
// Invariants: `enqueue` and `download_results` are called once each, in this order,
// by the holder of gpu_mtx. `add_results` is called after the download has passed.
// It needs no lock, because it reads the worker's pinned memory only.
#pragma once

#include <vector>

#include "device_circuit.hpp"
#include "pace.hpp"

namespace cuzk::CUZK_VARIANT {

// Points of a query that are used together: all that stay on the device, or one
// piece of the others.
struct Span {
    uint64_t first = 0;
    uint64_t len = 0;
};

// A range of words of a witness.
struct Words {
    uint32_t begin = 0;
    uint32_t end = 0;
};

class Msms {
public:
    // `wide_ranks` has the number of wide values before each word of the witness,
    // and the number of all. Adds to the streamed bytes of `figures`.
    Msms(Circuit &circuit, std::size_t worker, const std::vector<uint32_t> &wide_ranks,
         const cuzk_checkpoint &checkpoint, cuzk_proof_figures &figures);

    // MSMs that need only the witness and points that stay begin at once, beside the
    // transforms. Those that need the quotient, or pieces, come after the
    // transforms.
    void enqueue(bool b_g1);
    void download_results();
    // Throws CUZK_INVALID_POINT if a streamed point is not on the curve.
    void add_results(cuzk_sums &sums) const;

private:
    // The place where MSMs are computed: after the transforms, or beside them.
    struct Lane {
        DeviceStream &stream;
        const SumsLayout &layout;
        Pace &pace;
    };

    // The place of the result of one MSM or one sum of points, from the results'
    // start.
    struct Result {
        uint32_t query;
        std::size_t offset;
        device::Windows windows;
    };

    // By streamed piece: the place of its points, for the index of a bad one.
    struct Piece {
        uint32_t query;
        uint64_t first;
    };

    Lane main_lane() { return {*device_.compute, plan_.main, compute_pace_}; }
    Lane side_lane() { return {*device_.side, plan_.side, side_pace_}; }
    template <class Group> void enqueue_h();
    template <class Group> void enqueue_resident(uint32_t query);
    template <class Group> void enqueue_streamed(uint32_t query);
    template <class Group>
    void enqueue_span(const Lane &lane, uint32_t query, const Span &span,
                      const typename Group::Affine *bases);
    template <class Group>
    void enqueue_bits(const Lane &lane, uint32_t query, const device::Query &of,
                      const Words &words, const typename Group::Affine *bases);
    template <class Group>
    void enqueue_wide(const Lane &lane, uint32_t query, const device::Query &of,
                      const Words &words, const typename Group::Affine *bases);
    template <class Group>
    void enqueue_msm(const Lane &lane, uint32_t query, const typename Group::Affine *bases,
                     const Fr *values, const uint32_t *places, uint64_t n, device::Form form);
    template <class Group, class Use> void for_each_piece(uint32_t query, const Use &use);
    template <class Kernels>
    void launch(const Lane &lane, const char *what, const Kernels &kernels) {
        lane.pace.step(checkpoint_);
        circuit_.launch(worker_, lane.stream, what, kernels);
    }
    template <class Xyzz> Xyzz *take_result(uint32_t query, device::Windows windows);

    Circuit &circuit_;
    Device &device_;
    DeviceApi &api_;
    const Plan &plan_;
    std::size_t worker_;
    const std::vector<uint32_t> &wide_ranks_;
    cuzk_checkpoint checkpoint_;
    cuzk_proof_figures &figures_;
    Pace compute_pace_;
    Pace side_pace_;
    std::vector<Result> results_;
    std::size_t results_end_;
    std::vector<Piece> pieces_;
};

} // namespace cuzk::CUZK_VARIANT
