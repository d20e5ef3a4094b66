// Signed digits of scalars.
//
// A scalar above r/2 is replaced by its negative, with the opposite sign. So the
// rest is below 2^254, and ceil(255 / bits) digits from −2^(bits−1) + 1 to
// 2^(bits−1) are enough. For 17 bits, which is the best size for some million
// scalars, that saves one window.
#pragma once

#include "field.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

// (r − 1) / 2
CUZK_FN constexpr Fr half_modulus() {
    return {{0x80000000, 0x7fffffff, 0x7fff2dff, 0xa9ded201, 0x04d0ec02, 0x199cec04, 0x94cebea4,
             0x39f6d3a9}};
}

// Calls f(window, magnitude, is_negative) for each digit that is not 0.
template <class F>
CUZK_FN void for_each_digit(Fr scalar, Form form, Windows windows, const F &f) {
    if (form == Form::montgomery) {
        scalar = to_canonical(scalar);
    }
    Fr half = half_modulus();
    const bool is_negated = PlainChains<8>::subtract(half.limbs, scalar.limbs) != 0;
    if (is_negated) {
        scalar = sub(Fr{}, scalar);
    }
    const uint32_t half_window = 1U << (windows.bits - 1);
    uint32_t carry = 0;
    for (uint32_t window = 0; window < windows.windows; ++window) {
        // The limbs are shifted down, because a register cannot be indexed.
        const uint32_t raw = (scalar.limbs[0] & (2 * half_window - 1)) + carry;
        CUZK_UNROLL
        for (int i = 0; i < 8; ++i) {
            const uint64_t next = i < 7 ? scalar.limbs[i + 1] : 0;
            scalar.limbs[i] =
                static_cast<uint32_t>((next << 32 | scalar.limbs[i]) >> windows.bits);
        }
        carry = raw > half_window ? 1 : 0;
        const uint32_t magnitude = carry != 0 ? 2 * half_window - raw : raw;
        if (magnitude != 0) {
            f(window, magnitude, (carry != 0) != is_negated);
        }
    }
}

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
