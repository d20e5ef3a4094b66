// One proof on a device: a witness is uploaded, five MSMs are read back.
//
// ```text
//        witnesses' stream, no lock     gpu_mtx                            no lock
// stage ─▶ the witness goes up ─▶ run ─▶ evaluation, quotient, MSM over H ─▶ added up
//                                    ├─▶ MSMs of points that stay ─────────┘
//                                    └─▶ b_g2_msm, on its pool ───────────────▶ finish
// ```
//
// Invariants: the steps are taken once, in order. gpu_mtx is held neither while the
// witness is uploaded nor while b_g2_msm is waited for. After any failure, and
// after a checkpoint stopped the proof, the worker is released and no work of this
// proof is under way any more.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <vector>

#include "device_circuit.hpp"
#include "pace.hpp"
#include "read_back.hpp"

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

// The words whose auxiliaries have their bases in `span`. `ranks` is null if all
// auxiliaries are in the query. `before` is the number of bases that come before.
Words words_of(const std::vector<uint32_t> *ranks, uint64_t before, const Span &span,
               uint32_t num_words);

// One proof, from its witness to its MSMs.
class Proof final : public cuzk_proof {
public:
    Proof(Circuit &circuit, const cuzk_witness &witness, const cuzk_checkpoint &checkpoint);
    ~Proof() override;

    void run(bool b_g1, const cuzk_intermediates *intermediates,
             const cuzk_checkpoint &checkpoint, cuzk_proof_figures &figures) override;
    void finish(const cuzk_checkpoint &checkpoint, cuzk_sums &sums,
                cuzk_proof_figures &figures) override;

private:
    enum class State { staged, ran, finished, failed };

    // The place where MSMs are computed: after the transforms, or beside them.
    struct Lane {
        DeviceStream &stream;
        const SumsLayout &layout;
        Pace &pace;
    };

    // The result of b_g2_msm.
    struct InG2OnCpu {
        blst_p2 sum;
        double ms;
    };

    Lane main_lane() { return {*device_.compute, plan_.main, compute_pace_}; }
    Lane side_lane() { return {*device_.side, plan_.side, side_pace_}; }
    void expect(State state, const char *step);
    void upload();
    void start_b_g2();
    InG2OnCpu b_g2() const;
    void end_b_g2() noexcept;
    void device_region(bool b_g1, ReadBack &read_back);
    void stop_device() noexcept;
    void evaluate();
    void quotient();
    void sums(bool b_g1);
    template <class Group> void sum_h();
    template <class Group> void sum_resident(uint32_t query);
    template <class Group> void sum_streamed(uint32_t query);
    template <class Group>
    void sum_span(const Lane &lane, uint32_t query, const Span &span,
                  const typename Group::Affine *bases);
    template <class Group>
    void sum_wide(const Lane &lane, uint32_t query, const device::Query &of, const Words &words,
                  const typename Group::Affine *bases);
    template <class Group>
    void msm(const Lane &lane, uint32_t query, const typename Group::Affine *bases,
             const Fr *values, const uint32_t *places, uint64_t n, device::Form form);
    template <class Group, class Use> void for_each_piece(uint32_t query, const Use &use);
    template <class Enqueue>
    void launch(DeviceStream &stream, const char *what, const Enqueue &enqueue);
    template <class Enqueue>
    void launch(const Lane &lane, const char *what, const Enqueue &enqueue) {
        lane.pace.step(checkpoint_);
        launch(lane.stream, what, enqueue);
    }
    void add_results();
    void release_worker() noexcept;

    // The place of the result of one MSM or one sum of points, from the results'
    // start.
    struct Result {
        uint32_t query;
        std::size_t offset;
        device::Windows windows;
    };
    template <class Xyzz> Xyzz *take_result(uint32_t query, device::Windows windows);

    Circuit &circuit_;
    Device &device_;
    DeviceApi &api_;
    const Plan &plan_;
    cuzk_witness witness_;
    cuzk_checkpoint checkpoint_{}; // of the call that is running
    State state_ = State::staged;
    std::size_t worker_ = 0;
    bool has_worker_ = false;
    Pace compute_pace_;
    Pace side_pace_;
    std::vector<uint32_t> wide_ranks_; // by word, and all
    std::vector<Result> results_;
    std::size_t results_end_ = 0;
    // By streamed piece: the place of its points, for the index of a bad one.
    struct Piece {
        uint32_t query;
        uint64_t first;
    };
    std::vector<Piece> pieces_;
    cuzk_sums sums_{};
    cuzk_proof_figures figures_{};
    std::atomic<bool> b_g2_stop_{false};
    // Its destructor waits, so it is the last member: members are destroyed in
    // reverse order.
    std::future<InG2OnCpu> b_g2_;
};

} // namespace cuzk::CUZK_VARIANT
