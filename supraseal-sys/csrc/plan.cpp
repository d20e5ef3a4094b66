#include "plan.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "../cuda/kernels.hpp"
#include "status.hpp"

namespace cuzk::CUZK_VARIANT {
namespace {

using device::Fr;
using device::G1Xyzz;
using device::G2Xyzz;

constexpr std::size_t kWord = sizeof(uint64_t);

std::size_t align(std::size_t bytes) {
    return (bytes + kAlign - 1) / kAlign * kAlign;
}

uint32_t log_ceil(uint64_t value) {
    uint32_t log = 0;
    while (log < 63 && uint64_t{1} << log < value) {
        ++log;
    }
    return log;
}

uint64_t div_ceil(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

// Lays parts one after another.
class Cursor {
public:
    explicit Cursor(std::size_t at) : at_(at) {}

    Part take(std::size_t bytes) {
        const Part part{at_, bytes};
        at_ += align(bytes);
        return part;
    }
    std::size_t at() const { return at_; }

private:
    std::size_t at_;
};

// What a plan is free to choose.
struct Choice {
    uint32_t log_piece;
    bool whole_roots;
};

class Planner {
public:
    Planner(const cuzk_circuit_shape &shape, const cuzk_device_options &options, Choice choice)
        : shape_(shape), options_(options), choice_(choice) {}

    // Everything but the resident points. Its size does not depend on the
    // memory there is.
    Plan fixed() {
        const uint64_t piece = uint64_t{1} << choice_.log_piece;
        plan_.msm_points = static_cast<uint32_t>(piece);
        plan_.summary.piece_points = piece;
        plan_.sum_words = std::min<uint32_t>(plan_.msm_points / 64, device::SUM_WORDS_MAX);
        lay_worker();
        const std::size_t workers_end = plan_.worker.bytes * options_.workers;
        const std::size_t circuit_end = lay_circuit(workers_end);
        const std::size_t region_end = lay_region(circuit_end);
        cuzk_device_plan &summary = plan_.summary;
        summary.worker_bytes = plan_.worker.bytes;
        summary.circuit_bytes = circuit_end - workers_end;
        summary.region_bytes = region_end - circuit_end;
        summary.total_bytes = region_end;
        summary.pinned_bytes = plan_.worker.bytes * options_.workers +
                               2 * piece * point_bytes(CUZK_QUERY_H);
        return plan_;
    }

private:
    // The words of a bit for each auxiliary, and one more.
    std::size_t words() const { return shape_.num_aux / 64 + 2; }

    void lay_worker() {
        Cursor cursor(0);
        WorkerLayout &worker = plan_.worker;
        worker.inputs = cursor.take(shape_.num_inputs * sizeof(Fr));
        worker.bits = cursor.take(words() * kWord);
        worker.wide = cursor.take(words() * kWord);
        worker.ranks = cursor.take(words() * sizeof(uint32_t));
        worker.wide_values = cursor.take(shape_.max_wide * sizeof(Fr));
        plan_.results_max = 0;
        std::size_t bytes = 0;
        for (uint32_t query = 0; query < CUZK_QUERIES; ++query) {
            if (on_device(query, options_)) {
                const std::size_t results = results_of(query);
                const std::size_t point =
                    query == CUZK_QUERY_B_G2 ? sizeof(G2Xyzz) : sizeof(G1Xyzz);
                plan_.results_max += results;
                bytes += results * device::WINDOWS_MAX * point;
            }
        }
        // The words that say which points were bad come first.
        worker.results = cursor.take(align(plan_.results_max * sizeof(uint32_t)) + bytes);
        worker.bytes = cursor.at();
    }

    // At most so many multiplications and sums: for each span two that begin or
    // end in it, one for each full load of wide values or words, and one of the
    // inputs.
    std::size_t results_of(uint32_t query) const {
        const uint64_t spans =
            div_ceil(shape_.num_points[query], plan_.piece_points(query)) + 1;
        const uint64_t loads = query == CUZK_QUERY_H
                                   ? div_ceil(shape_.num_points[query], plan_.msm_points)
                                   : div_ceil(shape_.max_wide, plan_.msm_points) +
                                         div_ceil(words(), plan_.sum_words);
        return 2 * spans + loads + 1;
    }

    std::size_t lay_circuit(std::size_t start) {
        Cursor cursor(start);
        CircuitLayout &circuit = plan_.circuit;
        const std::size_t blocks = div_ceil(shape_.rows, device::EVALUATE_BLOCK_ROWS) + 1;
        circuit.coefficients = cursor.take(shape_.num_coefficients * sizeof(Fr));
        circuit.integers = cursor.take(shape_.num_coefficients * sizeof(int32_t));
        circuit.halves = cursor.take(256 * sizeof(Fr));
        circuit.part_ends = cursor.take(shape_.num_parts * sizeof(uint32_t));
        circuit.items = cursor.take(shape_.num_items * 2 * sizeof(uint32_t));
        circuit.shapes = cursor.take(shape_.num_shapes * 2 * sizeof(uint32_t));
        circuit.unit_rows = cursor.take(shape_.num_unit_rows * 2 * sizeof(uint32_t));
        circuit.references = cursor.take(shape_.num_references * 3 * sizeof(uint32_t));
        circuit.block_references = cursor.take(blocks * sizeof(uint32_t));
        for (Part *mask : {&circuit.a_mask, &circuit.b_mask}) {
            *mask = cursor.take(words() * kWord);
        }
        for (Part *ranks : {&circuit.a_ranks, &circuit.b_ranks}) {
            *ranks = cursor.take(words() * sizeof(uint32_t));
        }
        for (Part *inputs : {&circuit.a_inputs, &circuit.b_inputs}) {
            *inputs = cursor.take(shape_.num_inputs * sizeof(uint32_t));
        }
        const uint32_t log = shape_.log_domain;
        plan_.roots_low_log = choice_.whole_roots ? log : (log + 1) / 2;
        circuit.roots_low = cursor.take(sizeof(Fr) << plan_.roots_low_log);
        circuit.roots_high = cursor.take(sizeof(Fr) << (log - plan_.roots_low_log));
        return cursor.at();
    }

    std::size_t lay_region(std::size_t start) {
        Cursor region(start);
        const std::size_t vector = sizeof(Fr) << shape_.log_domain;
        plan_.b = region.take(vector);
        // Two uses of the same memory, one after the other.
        Cursor quotient(region.at());
        plan_.a = quotient.take(vector);
        plan_.scratch = quotient.take(vector);
        Cursor sums(region.at());
        const std::size_t raw = uint64_t{plan_.msm_points} * point_bytes(CUZK_QUERY_H);
        plan_.msm = sums.take(msm_bytes());
        plan_.places = sums.take(
            (uint64_t{shape_.max_wide} + shape_.num_inputs) * sizeof(uint32_t));
        plan_.decoded = sums.take(raw);
        for (Part &part : plan_.raw) {
            part = sums.take(raw);
        }
        return std::max(quotient.at(), sums.at());
    }

    std::size_t msm_bytes() const {
        const bool g2 = options_.b_g2_on_device != 0;
        std::size_t bytes = device::sum_g1_scratch_bytes(plan_.sum_words);
        if (g2) {
            bytes = std::max(bytes, device::sum_g2_scratch_bytes(plan_.sum_words));
        }
        // Every length is cut as the next power of two is.
        for (uint32_t log = 0; log <= choice_.log_piece; ++log) {
            const uint32_t n = uint32_t{1} << log;
            const device::Windows windows = device::choose_windows(n);
            bytes = std::max(bytes, device::msm_g1_scratch_bytes(n, windows));
            if (g2) {
                bytes = std::max(bytes, device::msm_g2_scratch_bytes(n, windows));
            }
        }
        return bytes;
    }

    const cuzk_circuit_shape &shape_;
    const cuzk_device_options &options_;
    Choice choice_;
    Plan plan_;
};

// Gives what is left to the points, in the order of the queries.
void make_resident(Plan &plan, const cuzk_circuit_shape &shape, const cuzk_device_options &options) {
    cuzk_device_plan &summary = plan.summary;
    std::size_t at = summary.total_bytes;
    for (uint32_t query = 0; query < CUZK_QUERIES; ++query) {
        const std::size_t left = (options.memory_bytes - at) / kAlign * kAlign;
        uint64_t points = 0;
        if (on_device(query, options)) {
            const uint64_t fit = left / point_bytes(query);
            const uint64_t all = shape.num_points[query];
            points = fit >= all ? all : fit / 64 * 64;
            // The first span holds the bases of every input.
            points = points < all && points < shape.num_inputs ? 0 : points;
        }
        plan.resident[query] = {at, points * point_bytes(query)};
        summary.resident_points[query] = points;
        at += align(plan.resident[query].bytes);
    }
    summary.resident_bytes = at - summary.total_bytes;
    summary.total_bytes = at;
}

void check(const cuzk_circuit_shape &shape, const cuzk_device_options &options) {
    const auto refuse = [](const std::string &what) {
        throw Error(CUZK_INVALID_ARGUMENT, "device plan: " + what);
    };
    const uint64_t domain = uint64_t{1} << std::min(shape.log_domain, 63U);
    if (shape.log_domain < 1 || shape.log_domain > device::LOG_DOMAIN_MAX) {
        refuse("log_domain: expected 1 to " + std::to_string(device::LOG_DOMAIN_MAX) + ", got " +
               std::to_string(shape.log_domain));
    }
    if (shape.num_inputs == 0 || uint64_t{shape.rows} + shape.num_inputs > domain) {
        refuse("rows: expected at least one input, and rows and inputs to fit the domain, got " +
               std::to_string(shape.rows) + " rows and " + std::to_string(shape.num_inputs) +
               " inputs for " + std::to_string(domain));
    }
    if (shape.num_points[CUZK_QUERY_H] != domain - 1 ||
        shape.num_points[CUZK_QUERY_L] != shape.num_aux ||
        shape.num_points[CUZK_QUERY_B_G1] != shape.num_points[CUZK_QUERY_B_G2]) {
        refuse("num_points: expected one less than the domain in H, one for each auxiliary in L, "
               "and as many in both queries over B");
    }
    const uint64_t variables = uint64_t{shape.num_inputs} + shape.num_aux;
    if (shape.num_points[CUZK_QUERY_A] > variables || shape.num_points[CUZK_QUERY_B_G1] > variables ||
        shape.num_points[CUZK_QUERY_A] < shape.num_inputs ||
        shape.num_points[CUZK_QUERY_B_G1] < shape.num_b_inputs ||
        shape.num_b_inputs > shape.num_inputs || shape.max_wide > shape.num_aux) {
        refuse("a query or the wide values are more than the variables, or fewer than the inputs");
    }
    // Places of bases are below 2^31.
    if (variables > INT32_MAX) {
        refuse("more than 2^31 variables");
    }
    if (options.workers == 0 || options.workers > CUZK_THREADS_MAX) {
        refuse("workers: expected 1 to " + std::to_string(CUZK_THREADS_MAX) + ", got " +
               std::to_string(options.workers));
    }
}

} // namespace

std::size_t Plan::piece_points(uint32_t query) const {
    return summary.piece_points * point_bytes(CUZK_QUERY_H) / point_bytes(query);
}

Plan make_plan(const cuzk_circuit_shape &shape, const cuzk_device_options &options) {
    check(shape, options);
    uint64_t longest = 0;
    for (const uint64_t points : shape.num_points) {
        longest = std::max(longest, points);
    }
    // A piece in G2 has half as many points, and holds all inputs too.
    const uint32_t least =
        std::max(kLogPieceMin, log_ceil(uint64_t{shape.num_inputs} * 2));
    const uint32_t most = std::max(least, std::min(kLogPieceMax, log_ceil(longest) + 1));
    std::optional<Plan> best;
    uint64_t least_bytes = UINT64_MAX;
    for (uint32_t log = most + 1; log-- > least;) {
        // Shorter pieces may leave more room for points, but cost time: not
        // below what is good as long as that fits.
        if (best && log < kLogPieceGood) {
            break;
        }
        for (const bool whole_roots : {true, false}) {
            Plan plan = Planner(shape, options, {log, whole_roots}).fixed();
            least_bytes = std::min(least_bytes, plan.summary.total_bytes);
            if (plan.summary.total_bytes > options.memory_bytes) {
                continue;
            }
            make_resident(plan, shape, options);
            const auto resident = [](const Plan &of) {
                uint64_t bytes = 0;
                for (const Part &part : of.resident) {
                    bytes += part.bytes;
                }
                return bytes;
            };
            if (!best || resident(plan) > resident(*best)) {
                best = plan;
            }
        }
    }
    if (!best) {
        throw Error(CUZK_CIRCUIT_TOO_LARGE,
                    "the circuit needs at least " + std::to_string(least_bytes) +
                        " bytes of device memory, and there are " +
                        std::to_string(options.memory_bytes) +
                        "; lower the number of workers of the device or prove on another");
    }
    return *best;
}

} // namespace cuzk::CUZK_VARIANT
