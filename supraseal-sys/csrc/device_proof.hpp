// One proof on a device: a witness up, five sums down.
//
// ```text
//        worker's stream, no lock       gpu_mtx                            no lock
// stage ─▶ the witness goes up ─▶ run ─▶ evaluation, quotient, sums in G1 ─▶ added up
//                                    └─▶ b_g2_msm, on its pool ───────────────▶ finish
// ```
//
// Invariants: the steps are taken once, in order; gpu_mtx is held neither while
// the witness goes up nor while b_g2_msm is waited for; whatever fails, the
// worker is released and nothing of this proof is under way any more.
#pragma once

#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "device_circuit.hpp"

namespace cuzk::CUZK_VARIANT {

// Points of a query that are used together: all that stay on the device, or
// one piece of the others.
struct Span {
    uint64_t first = 0;
    uint64_t len = 0;
};

// A range of words of a witness.
struct Words {
    uint32_t begin = 0;
    uint32_t end = 0;
};

// The words whose auxiliaries have their bases in `span`. `ranks` is null if
// every auxiliary is in the query, and `before` how many bases come before.
Words words_of(const std::vector<uint32_t> *ranks, uint64_t before, const Span &span,
               uint32_t num_words);

// One proof, from its witness to its sums.
class Proof final : public cuzk_proof {
public:
    Proof(Circuit &circuit, const cuzk_witness &witness);
    ~Proof() override;

    void run(cuzk_proof_figures &figures) override;
    void finish(cuzk_sums &sums, cuzk_proof_figures &figures) override;

private:
    enum class State { staged, ran, finished, failed };

    void expect(State state, const char *step);
    void upload();
    void start_b_g2();
    void join_b_g2() noexcept;
    void device_region();
    void quotient();
    template <class Group> void sum_h();
    template <class Group> void sum_packed(uint32_t query);
    template <class Group>
    void sum_span(uint32_t query, const Span &span, const typename Group::Affine *bases);
    template <class Group>
    void msm(uint32_t query, const typename Group::Affine *bases, const Fr *values,
             const uint32_t *places, uint64_t n, device::Form form);
    template <class Group, class Use> void for_each_span(uint32_t query, const Use &use);
    void add_results();
    void release_worker() noexcept;

    // Where one multiplication's or sum's result is, from the results' start.
    struct Result {
        uint32_t query;
        std::size_t offset;
        device::Windows windows; // {0, 1} of a sum
    };
    template <class Xyzz> Xyzz *take_result(uint32_t query, device::Windows windows);

    Circuit &circuit_;
    Device &device_;
    DeviceApi &api_;
    const Plan &plan_;
    cuzk_witness witness_;
    State state_ = State::staged;
    std::size_t worker_ = 0;
    bool has_worker_ = false;
    std::vector<uint32_t> wide_ranks_; // by word, and all
    std::vector<Result> results_;
    std::size_t results_end_ = 0;
    // By streamed piece: where its points are, for a bad one's index.
    struct Piece {
        uint32_t query;
        uint64_t first;
    };
    std::vector<Piece> pieces_;
    uint32_t turn_ = 0; // of the piece buffers
    cuzk_sums sums_{};
    cuzk_proof_figures figures_{};
    double b_g2_ms_ = 0; // of the thread below, until it has ended
    std::thread b_g2_;
    std::exception_ptr b_g2_failure_;
};

} // namespace cuzk::CUZK_VARIANT
