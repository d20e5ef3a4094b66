// The device code as plain C++, for tests without a device: one translation unit,
// compiled with CUZK_EMULATED, and a C interface for `src/emulated.rs`.
#include <vector>

#include "decode.cu"
#include "evaluate.cu"
#include "msm_g1.cu"
#include "msm_g2.cu"
#include "quotient.cu"
#include "selftest.cu"

namespace {

using namespace cuzk::device;

// Bytes with arbitrary contents, like real scratch.
class Scratch {
public:
    explicit Scratch(size_t bytes) : words_(bytes / sizeof(uint64_t) + 33, 0xa5a5a5a5a5a5a5a5) {}

    void *start() {
        const auto at = reinterpret_cast<uintptr_t>(words_.data());
        return reinterpret_cast<void *>(div_ceil<uintptr_t>(at, 256) * 256);
    }

private:
    std::vector<uint64_t> words_;
};

struct Tables {
    std::vector<Fr> low, high;
    Roots roots;
    Error error;

    Tables(uint32_t log, uint32_t low_log)
        : low(size_t{1} << low_log), high(size_t{1} << (log - low_log)),
          roots{low.data(), high.data(), low_log, log}, error(make_roots(roots, nullptr)) {}
};

template <class T> T field_operation(uint32_t operation, const T &a, const T &b) {
    using Plain = PlainChains<Modulus<T>::LIMBS>;
    switch (operation) {
    case 0:
        return mul(a, b);
    case 1:
        return mul_with<Plain>(a, b);
    case 2:
        return add(a, b);
    case 3:
        return sub(a, b);
    case 4:
        return add_with<Plain>(a, b);
    default:
        return sub_with<Plain>(a, b);
    }
}

template <class F>
Error sum_of(const Affine<F> *bases, const Query &query, const uint64_t *bits, uint32_t words,
             Jacobian<F> &out) {
    Scratch scratch(sum_scratch_bytes<F>(words));
    Xyzz<F> result;
    const Error error = sum(bases, query, bits, words, scratch.start(), &result, nullptr);
    out = finish(&result, ONE_SUM);
    return error;
}

template <class F>
Error multiplication_of(const Affine<F> *bases, const Scalars &scalars, Windows windows,
                        Jacobian<F> &out) {
    Scratch scratch(msm_scratch_bytes<F>(scalars.n, windows));
    std::vector<Xyzz<F>> sums(WINDOWS_MAX);
    const Error error = msm(bases, scalars, windows, scratch.start(), sums.data(), nullptr);
    out = finish(sums.data(), windows);
    return error;
}

} // namespace

extern "C" {

void cuzk_emulated_fr(uint32_t operation, const Fr *a, const Fr *b, Fr *out) noexcept {
    *out = field_operation(operation, *a, *b);
}

void cuzk_emulated_fp(uint32_t operation, const Fp *a, const Fp *b, Fp *out) noexcept {
    *out = field_operation(operation, *a, *b);
}

void cuzk_emulated_fp_mul_add(const Fp *a, const Fp *b, const Fp *c, const Fp *d,
                              Fp *out) noexcept {
    *out = mul_add_with<PlainChains<Modulus<Fp>::LIMBS>>(*a, *b, *c, *d);
}

int cuzk_emulated_self_test(uint32_t rounds, uint32_t *failures) noexcept {
    return self_test(rounds, failures, nullptr);
}

int cuzk_emulated_load_kernels() noexcept {
    const uint32_t stop = 1;
    return load_kernels(Stream(nullptr, &stop));
}

uint32_t cuzk_emulated_kernels_launched() noexcept { return kernels_launched.load(); }

uint64_t cuzk_emulated_blocks_run() noexcept { return blocks_run.load(); }

int cuzk_emulated_scan(uint32_t *words, uint32_t length) noexcept {
    std::vector<uint32_t> totals(scan_totals(length));
    return scan(words, length, totals.data(), nullptr);
}

int cuzk_emulated_transform(uint32_t log, uint32_t roots_log, uint32_t low_log, Fr *values,
                            bool coset, bool inverse) noexcept {
    const Tables tables(roots_log, low_log);
    return transform(tables.roots, log, values, coset, inverse, nullptr);
}

int cuzk_emulated_quotient(uint32_t log, uint32_t roots_log, uint32_t low_log, Fr *a, Fr *b,
                           bool is_canonical) noexcept {
    const Tables tables(roots_log, low_log);
    std::vector<Fr> scratch(size_t{1} << log);
    return quotient(tables.roots, log, a, b, scratch.data(),
                    is_canonical ? Form::canonical : Form::montgomery, nullptr);
}

int cuzk_emulated_evaluate(const Program *program, const Witness *witness, uint32_t log,
                           bool is_reversed, Fr *a, Fr *b) noexcept {
    return evaluate(*program, *witness, log,
                    is_reversed ? Order::bit_reversed : Order::natural, a, b, nullptr);
}

int cuzk_emulated_wide_bases(const Query *query, const uint64_t *wide, const uint32_t *ranks,
                             uint32_t words, uint32_t *places) noexcept {
    return wide_bases(*query, wide, ranks, words, places, nullptr);
}

int cuzk_emulated_sum_g1(const G1Affine *bases, const Query *query, const uint64_t *bits,
                         uint32_t words, G1Jacobian *out) noexcept {
    return sum_of(bases, *query, bits, words, *out);
}

int cuzk_emulated_sum_g2(const G2Affine *bases, const Query *query, const uint64_t *bits,
                         uint32_t words, G2Jacobian *out) noexcept {
    return sum_of(bases, *query, bits, words, *out);
}

// Returns true if scratch never shrinks as scalars are added, one by one up to n,
// and always has room for all partials.
bool cuzk_emulated_scratch_grows(uint32_t n, uint32_t bits) noexcept {
    const Windows windows = windows_of(bits);
    size_t before = 0;
    for (uint32_t k = 0; k <= n; ++k) {
        const size_t bytes = msm_scratch_bytes<Fp>(k, windows);
        if (bytes < before || Layout::of(k, windows).partials > Layout::room(k, windows)) {
            return false;
        }
        before = bytes;
    }
    return true;
}

uint32_t cuzk_emulated_window_bits(size_t n) noexcept { return choose_windows(n).bits; }

int cuzk_emulated_msm_g1(const G1Affine *bases, const Scalars *scalars, uint32_t bits,
                         G1Jacobian *out) noexcept {
    return multiplication_of(bases, *scalars, windows_of(bits), *out);
}

int cuzk_emulated_msm_g2(const G2Affine *bases, const Scalars *scalars, uint32_t bits,
                         G2Jacobian *out) noexcept {
    return multiplication_of(bases, *scalars, windows_of(bits), *out);
}

int cuzk_emulated_decode_g1(const uint8_t *bytes, uint32_t n, G1Affine *points,
                            uint32_t *bad) noexcept {
    return decode(bytes, n, points, bad, nullptr);
}

int cuzk_emulated_decode_g2(const uint8_t *bytes, uint32_t n, G2Affine *points,
                            uint32_t *bad) noexcept {
    return decode(bytes, n, points, bad, nullptr);
}

} // extern "C"
