// Compares the device's own field arithmetic with the plain one, on the device.
//
// The assembly is the only code here that tests without a device do not run.
#include "field.hpp"
#include "load.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

constexpr uint32_t SELF_TEST_VALUES = 1 << 16;

// Edge values, in this order, before the pseudorandom ones.
enum Edge : uint32_t { ZERO, INTEGER_ONE, GREATEST, ONE, R_SQUARED, LOW_ONES, EDGES };

// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift
// generators, scrambled", 2016).
CUZK_BODY uint32_t next(uint64_t &state) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return static_cast<uint32_t>(state * 0x2545f4914f6cdd1d >> 32);
}

template <class T> CUZK_BODY T edge(uint32_t which) {
    T value{};
    if (which == INTEGER_ONE) {
        value.limbs[0] = 1;
    } else if (which == GREATEST) {
        value = Modulus<T>::value();
        value.limbs[0] -= 1; // the modulus is odd
    } else if (which == ONE) {
        value = Modulus<T>::one();
    } else if (which == R_SQUARED) {
        value = Modulus<T>::r_squared();
    } else if (which == LOW_ONES) {
        for (int i = 0; i + 1 < Modulus<T>::LIMBS; ++i) {
            value.limbs[i] = UINT32_MAX;
        }
    }
    return value;
}

template <class T> CUZK_BODY T pseudorandom(uint64_t &state) {
    T value;
    for (int i = 0; i < Modulus<T>::LIMBS; ++i) {
        value.limbs[i] = next(state);
    }
    // Below the modulus, whose highest bit is above the lowest 28 bits of the
    // highest limb.
    value.limbs[Modulus<T>::LIMBS - 1] &= 0x0fffffff;
    return value;
}

// Out of line: the functions that they test are inlined in them many times over.
template <class T> CUZK_CALL uint32_t differences(const T &a, const T &b) {
    using Plain = PlainChains<Modulus<T>::LIMBS>;
    uint32_t count = 0;
    count += is_equal(mul(a, b), mul_with<Plain>(a, b)) ? 0 : 1;
    count += is_equal(sqr(a), mul_with<Plain>(a, a)) ? 0 : 1;
    count += is_equal(add(a, b), add_with<Plain>(a, b)) ? 0 : 1;
    count += is_equal(sub(a, b), sub_with<Plain>(a, b)) ? 0 : 1;
    return count;
}

CUZK_CALL uint32_t differences_of_sums(const Fr &, const Fr &) { return 0; }

CUZK_CALL uint32_t differences_of_sums(const Fp &a, const Fp &b) {
    using Plain = PlainChains<Modulus<Fp>::LIMBS>;
    uint32_t count = 0;
    count += is_equal(mul_add(a, b, b, b), mul_add_with<Plain>(a, b, b, b)) ? 0 : 1;
    count += is_equal(mul_sub(a, b, a, a), mul_add_with<Plain>(a, b, neg(a), a)) ? 0 : 1;
    return count;
}

struct SelfTest {
    static constexpr uint32_t THREADS = 128;
    using Shared = Nothing;
    uint32_t rounds;
    uint32_t *failures;

    // The first EDGES^2 threads have all pairs of edge values.
    template <class T> static CUZK_BODY T operand(uint32_t index, uint32_t which, uint64_t &state) {
        const T random = pseudorandom<T>(state);
        return index < EDGES * EDGES ? edge<T>(which) : random;
    }

    template <class T> CUZK_BODY uint32_t test(uint32_t index, uint64_t state) const {
        uint32_t count = 0;
        T a = operand<T>(index, index % EDGES, state);
        T b = operand<T>(index, index / EDGES, state);
        for (uint32_t round = 0; round < rounds; ++round) {
            count += differences(a, b) + differences_of_sums(a, b);
            // The next round begins here.
            const T sum = add(a, b);
            b = round % 4 == 3 ? pseudorandom<T>(state) : mul(a, b);
            a = sum;
        }
        return count;
    }

    template <class B> CUZK_BODY void run(B &block, Shared &) const {
        block.each([&](uint32_t thread) {
            const uint32_t index = block.index * THREADS + thread;
            const uint64_t seed = (index + uint64_t{1}) * 0x9e3779b97f4a7c15;
            const uint32_t count = test<Fr>(index, seed) + test<Fp>(index, ~seed);
            if (count != 0) {
                atomic_add(failures, count);
            }
        });
    }
};

Error self_test(uint32_t rounds, uint32_t *failures, Stream stream) {
    return launch(SelfTest{rounds, failures}, SELF_TEST_VALUES / SelfTest::THREADS, stream);
}

Error load_kernels(Stream stream) {
    Error error = load<SelfTest>(stream);
    for (const auto load_file :
         {load_evaluation, load_quotient, load_decoding, load_g1, load_g2}) {
        error = error == OK ? load_file(stream) : error;
    }
    return error;
}

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
