// One proof on a device: a witness is uploaded, five MSMs are read back.
//
// ```text
//        witnesses' stream, no lock     gpu_mtx                            no lock
// stage ─▶ the witness goes up ─▶ run ─▶ evaluation, quotient, MSM over H ─▶ added up
//                                    ├─▶ MSMs of points that stay ─────────┘
//                                    └─▶ b_g2_msm, on its pool ───────────────▶ finish
// ```
//
// A caller may make the MSM in G2 itself. Then b_g2_msm does not run.
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
#include "device_msms.hpp"
#include "read_back.hpp"

namespace cuzk::CUZK_VARIANT {

// One proof, from its witness to its MSMs.
class Proof final : public cuzk_proof {
public:
    Proof(Circuit &circuit, const cuzk_witness &witness, const cuzk_checkpoint &checkpoint);
    ~Proof() override;

    void run(bool b_g1, bool host_b_g2, const cuzk_intermediates *intermediates,
             const cuzk_checkpoint &checkpoint, cuzk_proof_figures &figures) override;
    void finish(const cuzk_checkpoint &checkpoint, cuzk_sums &sums,
                cuzk_proof_figures &figures) override;

private:
    enum class State { staged, ran, finished, failed };

    // The result of b_g2_msm.
    struct InG2OnCpu {
        blst_p2 sum;
        double ms;
    };

    void expect(State state, const char *step);
    void upload();
    void start_b_g2(bool on_host);
    InG2OnCpu b_g2() const;
    void end_b_g2() noexcept;
    void device_region(bool b_g1, ReadBack &read_back, Msms &msms);
    void stop_device() noexcept;
    void evaluate();
    void quotient();
    void release_worker() noexcept;

    Circuit &circuit_;
    Device &device_;
    DeviceApi &api_;
    const Plan &plan_;
    cuzk_witness witness_;
    cuzk_checkpoint checkpoint_{}; // of the call that is running
    State state_ = State::staged;
    std::size_t worker_ = 0;
    bool has_worker_ = false;
    std::vector<uint32_t> wide_ranks_; // by word, and all
    cuzk_sums sums_{};
    cuzk_proof_figures figures_{};
    std::atomic<bool> b_g2_stop_{false};
    // Its destructor waits, so it is the last member: members are destroyed in
    // reverse order.
    std::future<InG2OnCpu> b_g2_;
};

} // namespace cuzk::CUZK_VARIANT
