// The device prover under sanitizers. Streams are threads here, under one lock of
// the double. That lock orders all work that does not overlap. So a data race is
// reported if two threads access the same memory at that moment, and a missing wait
// may go unreported. The tests with a slow stream (tests/device/order.rs) find
// those.
#include <array>
#include <thread>
#include <vector>

#include "sanitize.hpp"

namespace {

constexpr uint32_t kLogDomain = 4;
constexpr uint32_t kInputs = 2;
constexpr uint32_t kAux = 200;
constexpr uint32_t kInputBit = uint32_t{1} << 31;
constexpr uint32_t kWords = (kAux + 63) / 64;

constexpr uint32_t kRows = 12;

// A circuit all of whose points are the generator. Row r is (inputs[1] + aux[r]) *
// aux[r + 50]. It has a part of its own in A and in B.
struct Toy {
    std::vector<uint64_t> mask = std::vector<uint64_t>(kWords, UINT64_MAX);
    std::vector<uint8_t> g1;
    std::vector<uint8_t> g2;
    std::vector<blst_fr> coefficients;
    std::array<int32_t, 1> integers{1};
    std::vector<uint32_t> part_ends;
    std::vector<uint32_t> items; // variable, coefficient
    std::vector<uint32_t> shapes;
    std::vector<uint32_t> unit_rows;
    std::array<uint32_t, 3> references{0, 0, 0};
    std::vector<uint32_t> block_references{0, 0};
    std::array<uint32_t, kInputs> b_inputs{0, 1};
    std::vector<blst_fr> inputs;
    std::vector<uint64_t> bits = std::vector<uint64_t>(kWords + 1);
    std::vector<uint64_t> wide = std::vector<uint64_t>(kWords + 1);
    std::vector<blst_fr> wide_values;
    cuzk_circuit_data data{};
    cuzk_witness witness{};

    Toy() {
        mask.back() = UINT64_MAX >> (kWords * 64 - kAux);
        const uint32_t variables = kInputs + kAux;
        for (uint32_t i = 0; i < variables; ++i) {
            std::array<uint8_t, 192> bytes{};
            blst_p1_affine_serialize(bytes.data(), blst_p1_affine_generator());
            g1.insert(g1.end(), bytes.begin(), bytes.begin() + 96);
            blst_p2_affine_serialize(bytes.data(), blst_p2_affine_generator());
            g2.insert(g2.end(), bytes.begin(), bytes.end());
        }
        for (uint32_t aux = 0; aux < kAux; ++aux) {
            (aux % 5 == 0 ? wide : bits)[aux / 64] |= uint64_t{1} << aux % 64;
        }
        const uint64_t value[4] = {3, 5, 7, 9};
        blst_fr scalar;
        blst_fr_from_uint64(&scalar, value);
        inputs.assign(kInputs, scalar);
        wide_values.assign((kAux + 4) / 5, scalar);
        push_rows();
        lend();
    }

    void push_rows() {
        const uint64_t one[4] = {1, 0, 0, 0};
        blst_fr scalar;
        blst_fr_from_uint64(&scalar, one);
        coefficients.assign(1, scalar);
        const auto push = [&](uint32_t variable) {
            items.insert(items.end(), {variable, 0});
        };
        // Auxiliaries are counted back from the row's cursor.
        const auto aux = [](uint32_t index) { return kAux - index; };
        for (uint32_t row = 0; row < kRows; ++row) {
            push(kInputBit | 1);
            push(aux(row));
            part_ends.push_back(static_cast<uint32_t>(items.size() / 2));
            push(aux(row + 50));
            part_ends.push_back(static_cast<uint32_t>(items.size() / 2));
            shapes.insert(shapes.end(), {2 * row, 2 * row + 1});
            unit_rows.insert(unit_rows.end(), {row, kAux});
        }
    }

    void lend() {
        cuzk_circuit_shape &shape = data.shape;
        shape.log_domain = kLogDomain;
        shape.rows = kRows;
        shape.num_coefficients = static_cast<uint32_t>(coefficients.size());
        shape.num_parts = static_cast<uint32_t>(part_ends.size());
        shape.num_items = static_cast<uint32_t>(items.size() / 2);
        shape.num_shapes = static_cast<uint32_t>(shapes.size() / 2);
        shape.num_unit_rows = static_cast<uint32_t>(unit_rows.size() / 2);
        shape.num_references = 1;
        shape.num_inputs = kInputs;
        shape.num_aux = kAux;
        shape.max_wide = kAux;
        shape.num_b_inputs = kInputs;
        const uint64_t all = kInputs + kAux;
        const uint64_t points[CUZK_QUERIES] = {(1 << kLogDomain) - 1, kAux, all, all, all};
        for (int query = 0; query < CUZK_QUERIES; ++query) {
            shape.num_points[query] = points[query];
            data.points[query] = query == CUZK_QUERY_B_G2 ? g2.data() : g1.data();
        }
        data.coefficients = coefficients.data();
        data.integers = integers.data();
        data.part_ends = part_ends.data();
        data.items = items.data();
        data.shapes = shapes.data();
        data.unit_rows = unit_rows.data();
        data.references = references.data();
        data.block_references = block_references.data();
        data.a_aux = mask.data();
        data.b_aux = mask.data();
        data.b_inputs = b_inputs.data();
        witness = {inputs.data(),      bits.data(),       wide.data(), bits.size(),
                   wide_values.data(), wide_values.size()};
    }
};

// A checkpoint that stops at its n-th call; 0 for never.
int32_t count_down(void *left) {
    auto *calls = static_cast<int32_t *>(left);
    return *calls == 0 || --*calls != 0 ? 1 : 0;
}

cuzk_status prove(cuzk_circuit *circuit, const cuzk_witness &witness, int32_t stop_at) {
    cuzk_proof *proof = nullptr;
    const cuzk_checkpoint checkpoint{count_down, &stop_at};
    cuzk_status status = cuzk_prove_stage(circuit, &witness, checkpoint, &proof);
    cuzk_proof_figures figures;
    std::array<std::vector<blst_fr>, 3> vectors;
    vectors.fill(std::vector<blst_fr>(size_t{1} << kLogDomain));
    const cuzk_intermediates intermediates{vectors[0].data(), vectors[1].data(),
                                           vectors[2].data(), vectors[0].size()};
    if (status.code == CUZK_OK) {
        status = cuzk_prove_run(proof, 1, 1, &intermediates, checkpoint, &figures);
    }
    cuzk_sums sums;
    if (status.code == CUZK_OK) {
        status = cuzk_prove_finish(proof, checkpoint, &sums, &figures);
    }
    cuzk_proof_destroy(proof);
    return status;
}

// The least memory for which there is a plan.
uint64_t least_bytes(const cuzk_circuit_shape &shape, cuzk_device_options options) {
    uint64_t low = 1;
    uint64_t high = uint64_t{1} << 30;
    while (low < high) {
        options.memory_bytes = low + (high - low) / 2;
        cuzk_device_plan plan;
        if (cuzk_device_make_plan(&shape, &options, &plan).code == CUZK_OK) {
            high = options.memory_bytes;
        } else {
            low = options.memory_bytes + 1;
        }
    }
    return low;
}

void prove_on_double(gpu_resources *resources, const Toy &toy, uint64_t bytes, uint64_t lost_at) {
    cuzk_test_controls *controls = nullptr;
    expect(cuzk_test_controls_create(&controls), CUZK_OK, "controls");
    const cuzk_device_options options{bytes, 2, CUZK_B_G2_CPU, 60000, 0};
    cuzk_device *device = nullptr;
    expect(cuzk_test_device_open(bytes, &options, resources, controls, &device), CUZK_OK, "open");
    std::array<cuzk_circuit *, 2> circuits{};
    for (cuzk_circuit *&circuit : circuits) {
        expect(cuzk_circuit_create(device, &toy.data, &circuit), CUZK_OK, "circuit");
    }
    cuzk_test_fault(controls, lost_at, CUZK_TEST_FAULT_KERNEL);
    std::vector<std::thread> workers;
    for (int i = 0; i < 3; ++i) {
        workers.emplace_back([&, i] {
            for (int round = 0; round < 4; ++round) {
                // The first worker's proofs are stopped, sooner or later.
                const int32_t stop_at = i == 0 ? 1 + round * 3 : 0;
                const cuzk_status status =
                    prove(circuits[(i + round) % 2], toy.witness, stop_at);
                if (status.code != CUZK_OK && (i != 0 || status.code != CUZK_STOPPED)) {
                    expect(status, lost_at == 0 ? CUZK_OK : CUZK_DEVICE_LOST, "prove");
                }
            }
        });
    }
    for (std::thread &worker : workers) {
        worker.join();
    }
    for (cuzk_circuit *circuit : circuits) {
        cuzk_circuit_destroy(circuit);
    }
    cuzk_device_close(device);
    cuzk_test_controls_destroy(controls);
}

} // namespace

void prove_on_doubles(gpu_resources *resources) {
    const Toy toy;
    const cuzk_device_options options{0, 2, CUZK_B_G2_CPU, 60000, 0};
    const uint64_t least = least_bytes(toy.data.shape, options);
    prove_on_double(resources, toy, uint64_t{1} << 24, 0);
    prove_on_double(resources, toy, least, 0);
    for (const uint64_t lost_at : {30, 90, 150}) {
        prove_on_double(resources, toy, least, lost_at);
    }
}
