// Integers of N 32-bit limbs, least first: sums with carries, and the Montgomery
// product made of them.
//
// The product (Montgomery, "Modular multiplication without trial division", Math.
// Comp. 44, 1985) works in rows, one for each i. A row adds a·b[i] and a multiple
// of the modulus that clears the lowest limb, then drops that limb.
//
// A product of two limbs is two limbs wide. So products of the even limbs follow
// each other without overlap, and so do those of the odd limbs. `even` and `odd`
// are two accumulators, the latter one limb higher, and each row is two chains of
// multiply-adds in each. After a limb is dropped, the two change roles.
//
// The product takes N·(2N + 1) multiplications of 32 bits: 136 for 8 limbs, 300 for
// 12. A sum of two products takes N·(3N + 1).
#pragma once

#include "launch.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

// The plain chains, which define those in `chains.cuh`.
template <int N> struct PlainChains {
    // sum += Σ a[2k]·b·2^(64k) for k < N/2; returns the carry.
    static CUZK_FN uint32_t add_products(uint32_t *sum, const uint32_t *a, uint32_t b) {
        uint64_t carry = 0;
        CUZK_UNROLL
        for (int k = 0; k < N; k += 2) {
            const uint64_t product = static_cast<uint64_t>(a[k]) * b;
            const uint64_t low = sum[k] + (product & UINT32_MAX) + carry;
            const uint64_t high = sum[k + 1] + (product >> 32) + (low >> 32);
            sum[k] = static_cast<uint32_t>(low);
            sum[k + 1] = static_cast<uint32_t>(high);
            carry = high >> 32;
        }
        return static_cast<uint32_t>(carry);
    }

    // low += sum[1]. Then sum is shifted two limbs down with zeros above, and the
    // products and that addition's carry are added. sum[0] is zero before.
    static CUZK_FN void shift_add_products(uint32_t *sum, uint32_t *low, const uint32_t *a,
                                           uint32_t b) {
        uint64_t carry = static_cast<uint64_t>(*low) + sum[1];
        *low = static_cast<uint32_t>(carry);
        carry >>= 32;
        CUZK_UNROLL
        for (int k = 0; k < N; k += 2) {
            const uint64_t product = static_cast<uint64_t>(a[k]) * b;
            const uint64_t next = k + 2 < N ? sum[k + 2] : 0;
            const uint64_t after = k + 2 < N ? sum[k + 3] : 0;
            const uint64_t lower = next + (product & UINT32_MAX) + carry;
            const uint64_t upper = after + (product >> 32) + (lower >> 32);
            sum[k] = static_cast<uint32_t>(lower);
            sum[k + 1] = static_cast<uint32_t>(upper);
            carry = upper >> 32;
        }
    }

    // a += b; returns the carry.
    static CUZK_FN uint32_t add(uint32_t *a, const uint32_t *b) {
        uint64_t carry = 0;
        CUZK_UNROLL
        for (int i = 0; i < N; ++i) {
            carry += static_cast<uint64_t>(a[i]) + b[i];
            a[i] = static_cast<uint32_t>(carry);
            carry >>= 32;
        }
        return static_cast<uint32_t>(carry);
    }

    // a −= b; returns all ones if b was larger, else 0.
    static CUZK_FN uint32_t subtract(uint32_t *a, const uint32_t *b) {
        uint64_t borrow = 0;
        CUZK_UNROLL
        for (int i = 0; i < N; ++i) {
            const uint64_t difference = static_cast<uint64_t>(a[i]) - b[i] - (borrow & 1);
            a[i] = static_cast<uint32_t>(difference);
            borrow = difference >> 32;
        }
        return static_cast<uint32_t>(borrow);
    }
};

template <int N> struct Chains;

// The end of a Montgomery product: x < 2m is odd + even / 2^32, because even[0] is
// zero. out = x modulo m.
template <class C, int N>
CUZK_FN void finish_product(uint32_t *out, const uint32_t *even, uint32_t *odd,
                            const uint32_t *m) {
    uint32_t rest[N];
    CUZK_UNROLL
    for (int i = 0; i < N; ++i) {
        rest[i] = i + 1 < N ? even[i + 1] : 0;
    }
    C::add(odd, rest);
    CUZK_UNROLL
    for (int i = 0; i < N; ++i) {
        out[i] = odd[i];
    }
    const uint32_t borrow = C::subtract(out, m);
    CUZK_UNROLL
    for (int i = 0; i < N; ++i) {
        out[i] = borrow != 0 ? odd[i] : out[i];
    }
}

// even + odd·2^32 = a·b
template <int N>
CUZK_FN void first_row(uint32_t *even, uint32_t *odd, const uint32_t *a, uint32_t b) {
    CUZK_UNROLL
    for (int k = 0; k < N; k += 2) {
        const uint64_t low = static_cast<uint64_t>(a[k]) * b;
        const uint64_t high = static_cast<uint64_t>(a[k + 1]) * b;
        even[k] = static_cast<uint32_t>(low);
        even[k + 1] = static_cast<uint32_t>(low >> 32);
        odd[k] = static_cast<uint32_t>(high);
        odd[k + 1] = static_cast<uint32_t>(high >> 32);
    }
}

// even + odd·2^32 += a·b, if the sum has room.
template <class C, int N>
CUZK_FN void add_row(uint32_t *even, uint32_t *odd, const uint32_t *a, uint32_t b) {
    C::add_products(odd, a + 1, b);
    odd[N - 1] += C::add_products(even, a, b);
}

// The two accumulators, by row, and a modulus m with −1/m modulo 2^32.
template <class C, int N> struct Rows {
    uint32_t limbs[2][N];

    CUZK_FN void row(int i, const uint32_t *a, uint32_t b) {
        uint32_t *even = limbs[i % 2];
        uint32_t *odd = limbs[1 - i % 2];
        if (i == 0) {
            first_row<N>(even, odd, a, b);
        } else {
            // `odd` was the even one of the row before.
            C::shift_add_products(odd, even, a + 1, b);
            odd[N - 1] += C::add_products(even, a, b);
        }
    }

    CUZK_FN void more(int i, const uint32_t *a, uint32_t b) {
        add_row<C, N>(limbs[i % 2], limbs[1 - i % 2], a, b);
    }

    // Clears the row's lowest limb.
    CUZK_FN void reduce(int i, const uint32_t *m, uint32_t inverse) {
        more(i, m, limbs[i % 2][0] * inverse);
    }

    CUZK_FN void finish(uint32_t *out, const uint32_t *m) {
        finish_product<C, N>(out, limbs[(N - 1) % 2], limbs[N % 2], m);
    }
};

// out = a·b / 2^(32N) modulo m, reduced. All are below m, and 2m < 2^(32N);
// inverse is −1/m modulo 2^32.
template <class C, int N>
CUZK_FN void montgomery_product(uint32_t *out, const uint32_t *a, const uint32_t *b,
                                const uint32_t *m, uint32_t inverse) {
    Rows<C, N> rows;
    CUZK_UNROLL
    for (int i = 0; i < N; ++i) {
        rows.row(i, a, b[i]);
        rows.reduce(i, m, inverse);
    }
    rows.finish(out, m);
}

// out = (a·b + c·d) / 2^(32N) modulo m, reduced. It takes half a product fewer
// multiplications than two products. 4m < 2^(32N).
template <class C, int N>
CUZK_FN void montgomery_products(uint32_t *out, const uint32_t *a, const uint32_t *b,
                                 const uint32_t *c, const uint32_t *d, const uint32_t *m,
                                 uint32_t inverse) {
    Rows<C, N> rows;
    CUZK_UNROLL
    for (int i = 0; i < N; ++i) {
        rows.row(i, a, b[i]);
        rows.more(i, c, d[i]);
        rows.reduce(i, m, inverse);
    }
    rows.finish(out, m);
}

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
