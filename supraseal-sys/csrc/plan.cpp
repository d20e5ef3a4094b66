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

// Storage proofs have a few thousand.
constexpr uint32_t kInputsMax = uint32_t{1} << 20;

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

// Places parts one after another.
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

// The choices that a plan is free to make.
struct Choice {
    uint32_t log_piece;
    bool whole_roots;
    bool b_g2_on_device;
};

class Planner {
public:
    Planner(const cuzk_circuit_shape &shape, const cuzk_device_options &options, Choice choice)
        : shape_(shape), options_(options), choice_(choice) {}

    // Plans everything but the resident points. Its size does not depend on the
    // available memory.
    Plan fixed() {
        const uint64_t piece = uint64_t{1} << choice_.log_piece;
        cuzk_device_plan &summary = plan_.summary;
        summary.b_g2_on_device = choice_.b_g2_on_device ? 1 : 0;
        summary.piece_points = piece;
        plan_.main.msm_points = static_cast<uint32_t>(piece);
        plan_.main.sum_words = std::min<uint32_t>(plan_.main.msm_points / 64, device::SUM_WORDS_MAX);
        plan_.side.msm_points = uint32_t{1} << log_side();
        plan_.side.sum_words = plan_.main.sum_words;
        lay_worker();
        summary.worker_bytes = plan_.worker.bytes;
        summary.witness_bytes = plan_.worker.wide_values.offset + plan_.worker.wide_values.bytes;
        const std::size_t workers_bytes = plan_.worker.bytes * options_.workers;
        const std::size_t frame_bytes = lay_region(workers_bytes);
        summary.region_bytes = frame_bytes - workers_bytes;
        summary.circuit_bytes = lay_circuit();
        summary.total_bytes = frame_bytes + summary.circuit_bytes;
        summary.pinned_bytes = workers_bytes + 2 * piece * point_bytes(CUZK_QUERY_H);
        return plan_;
    }

private:
    // The words of one bit for each auxiliary, and one more.
    std::size_t words() const { return shape_.num_aux / 64 + 2; }

    // No longer than there are values for it.
    uint32_t log_side() const {
        const uint32_t wide = std::min({choice_.log_piece, kLogSideMax, log_ceil(shape_.max_wide)});
        return std::max(wide, log_ceil(shape_.num_inputs));
    }

    void lay_worker() {
        Cursor cursor(0);
        WorkerLayout &worker = plan_.worker;
        worker.stop = cursor.take(2 * sizeof(uint32_t));
        worker.inputs = cursor.take(shape_.num_inputs * sizeof(Fr));
        worker.bits = cursor.take(words() * kWord);
        worker.wide = cursor.take(words() * kWord);
        worker.ranks = cursor.take(words() * sizeof(uint32_t));
        worker.wide_values = cursor.take(shape_.max_wide * sizeof(Fr));
        plan_.results_max = 0;
        std::size_t bytes = 0;
        for (uint32_t query = 0; query < CUZK_QUERIES; ++query) {
            if (plan_.on_device(query)) {
                const std::size_t results = results_of(query);
                const std::size_t point =
                    query == CUZK_QUERY_B_G2 ? sizeof(G2Xyzz) : sizeof(G1Xyzz);
                plan_.results_max += results;
                bytes += results * device::WINDOWS_MAX * point;
            }
        }
        // The words that tell the bad points come first.
        worker.results = cursor.take(align(plan_.results_max * sizeof(uint32_t)) + bytes);
        worker.bytes = cursor.at();
    }

    // The most multiplications and sums. For each span there are two that begin or
    // end in it. There is one for each full load of wide values or words, if loads
    // are smaller. There is one of the inputs.
    std::size_t results_of(uint32_t query) const {
        const uint64_t spans =
            div_ceil(shape_.num_points[query], plan_.piece_points(query)) + 1;
        const uint64_t loads = query == CUZK_QUERY_H
                                   ? div_ceil(shape_.num_points[query], plan_.main.msm_points)
                                   : div_ceil(shape_.max_wide, plan_.side.msm_points) +
                                         div_ceil(words(), plan_.side.sum_words);
        return 2 * spans + loads + 1;
    }

    std::size_t lay_circuit() {
        Cursor cursor(0);
        CircuitLayout &circuit = plan_.circuit;
        const std::size_t blocks = div_ceil(shape_.rows, device::EVALUATE_BLOCK_ROWS) + 1;
        circuit.coefficients = cursor.take(shape_.num_coefficients * sizeof(Fr));
        circuit.integers = cursor.take(shape_.num_coefficients * sizeof(int32_t));
        circuit.halves = cursor.take(256 * sizeof(Fr));
        circuit.part_ends = cursor.take(shape_.num_parts * sizeof(uint32_t));
        circuit.items = cursor.take(2 * sizeof(uint32_t) * shape_.num_items);
        circuit.shapes = cursor.take(2 * sizeof(uint32_t) * shape_.num_shapes);
        circuit.unit_rows = cursor.take(2 * sizeof(uint32_t) * shape_.num_unit_rows);
        circuit.references = cursor.take(3 * sizeof(uint32_t) * shape_.num_references);
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
        lay_sums(region, plan_.side, log_side());
        const std::size_t vector = sizeof(Fr) << shape_.log_domain;
        plan_.b = region.take(vector);
        // Two uses of the same memory, one after the other.
        Cursor quotient(region.at());
        plan_.a = quotient.take(vector);
        plan_.scratch = quotient.take(vector);
        Cursor sums(region.at());
        const std::size_t raw = plan_.summary.piece_points * point_bytes(CUZK_QUERY_H);
        lay_sums(sums, plan_.main, choice_.log_piece);
        plan_.decoded = sums.take(raw);
        for (Part &part : plan_.raw) {
            part = sums.take(raw);
        }
        return std::max(quotient.at(), sums.at());
    }

    void lay_sums(Cursor &cursor, SumsLayout &sums, uint32_t log_msm) const {
        sums.scratch = cursor.take(scratch_bytes(sums.sum_words, log_msm));
        sums.places = cursor.take(
            (uint64_t{shape_.max_wide} + shape_.num_inputs) * sizeof(uint32_t));
    }

    // The scratch of sums and of multiplications up to these sizes.
    std::size_t scratch_bytes(uint32_t sum_words, uint32_t log_msm) const {
        const bool g2 = choice_.b_g2_on_device;
        std::size_t bytes = device::sum_scratch_bytes<device::Fp>(sum_words);
        if (g2) {
            bytes = std::max(bytes, device::sum_scratch_bytes<device::Fp2>(sum_words));
        }
        // Each length is cut as the next power of two is.
        for (uint32_t log = 0; log <= log_msm; ++log) {
            const uint32_t n = uint32_t{1} << log;
            const device::Windows windows = device::choose_windows(n);
            bytes = std::max(bytes, device::msm_scratch_bytes<device::Fp>(n, windows));
            if (g2) {
                bytes = std::max(bytes, device::msm_scratch_bytes<device::Fp2>(n, windows));
            }
        }
        return bytes;
    }

    const cuzk_circuit_shape &shape_;
    const cuzk_device_options &options_;
    Choice choice_;
    Plan plan_;
};

// Returns true if the query's points may stay on the device.
bool may_stay(const Plan &plan, uint32_t query) {
    return plan.on_device(query) && query != CUZK_QUERY_B_G1;
}

// Gives the rest of `memory_bytes` to the points, in the order of the queries.
// Returns true if all of them fit.
bool make_resident(Plan &plan, const cuzk_circuit_shape &shape, uint64_t memory_bytes) {
    cuzk_device_plan &summary = plan.summary;
    std::size_t at = summary.total_bytes;
    bool is_enough = true;
    for (uint32_t query = 0; query < CUZK_QUERIES; ++query) {
        const std::size_t left = memory_bytes < at ? 0 : (memory_bytes - at) / kAlign * kAlign;
        uint64_t points = 0;
        if (may_stay(plan, query)) {
            const uint64_t fit = left / point_bytes(query);
            const uint64_t all = shape.num_points[query];
            points = fit >= all ? all : fit / 64 * 64;
            // The first span holds the bases of all inputs.
            points = points < all && points < shape.num_inputs ? 0 : points;
            is_enough = is_enough && points == all;
        }
        // Offsets in the block.
        plan.resident[query] = {at - plan.frame_bytes(), points * point_bytes(query)};
        summary.resident_points[query] = points;
        at += align(plan.resident[query].bytes);
    }
    summary.resident_bytes = at - summary.total_bytes;
    summary.total_bytes = at;
    return is_enough;
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
    // A piece of points holds all inputs, twice over, and its length is a 32-bit
    // number.
    if (shape.num_inputs > kInputsMax) {
        refuse("num_inputs: expected at most " + std::to_string(kInputsMax) + ", got " +
               std::to_string(shape.num_inputs));
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
    if (options.b_g2 > CUZK_B_G2_AUTO) {
        refuse("b_g2: expected " + std::to_string(CUZK_B_G2_CPU) + " to " +
               std::to_string(CUZK_B_G2_AUTO) + ", got " + std::to_string(options.b_g2));
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

namespace {

// The plan with the most points resident, with long pieces rather than short ones;
// or the least memory for which there is a plan.
struct Search {
    std::optional<Plan> best;
    bool has_all = false;
    uint64_t least_bytes = UINT64_MAX;
};

Search search(const cuzk_circuit_shape &shape, const cuzk_device_options &options,
              bool b_g2_on_device) {
    uint64_t longest = 0;
    for (const uint64_t points : shape.num_points) {
        longest = std::max(longest, points);
    }
    // A piece in G2 has half as many points, and holds all inputs, too.
    const uint32_t least =
        std::max(kLogPieceMin, log_ceil(uint64_t{shape.num_inputs} * 2));
    const uint32_t asked = options.log_piece_max == 0 ? kLogPieceMax : options.log_piece_max;
    const uint32_t most =
        std::max(least, std::min({kLogPieceMax, asked, log_ceil(longest) + 1}));
    Search found;
    for (uint32_t log = most + 1; log-- > least;) {
        // Shorter pieces may leave more room for points, but cost time. So they do
        // not go below the good length as long as that fits.
        if (found.best && log < kLogPieceGood) {
            break;
        }
        for (const bool whole_roots : {true, false}) {
            const Plan fixed = Planner(shape, options, {log, whole_roots, b_g2_on_device}).fixed();
            found.least_bytes = std::min(found.least_bytes, fixed.summary.total_bytes);
            if (fixed.summary.total_bytes > options.memory_bytes) {
                continue;
            }
            Plan plan = fixed;
            const bool has_all = make_resident(plan, shape, options.memory_bytes);
            if (!has_all) {
                plan = fixed;
                make_resident(plan, shape,
                              options.memory_bytes - options.memory_bytes / kPartOfOthers);
            }
            if (!found.best || plan.summary.resident_bytes > found.best->summary.resident_bytes) {
                found.best = plan;
                found.has_all = has_all;
            }
        }
    }
    return found;
}

} // namespace

Plan make_plan(const cuzk_circuit_shape &shape, const cuzk_device_options &options) {
    check(shape, options);
    if (options.b_g2 == CUZK_B_G2_AUTO) {
        const Search with = search(shape, options, true);
        if (with.best && with.has_all) {
            return *with.best;
        }
    }
    const Search found = search(shape, options, options.b_g2 == CUZK_B_G2_DEVICE);
    if (!found.best) {
        throw Error(CUZK_CIRCUIT_TOO_LARGE,
                    "the circuit needs at least " + std::to_string(found.least_bytes) +
                        " bytes of device memory, and there are " +
                        std::to_string(options.memory_bytes) +
                        "; lower the number of workers of the device or prove on another");
    }
    return *found.best;
}

} // namespace cuzk::CUZK_VARIANT
