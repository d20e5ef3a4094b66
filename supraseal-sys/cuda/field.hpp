// The fields of BLS12-381: Fr and Fp in Montgomery form, and Fp2 = Fp[u]/(u²+1).
//
// On the device the arithmetic consists of chains of its instructions
// (`chains.cuh`). On the host, where tests and the last few additions run, it uses
// limbs of 64 bits. Both are tested against the plain chains (`limbs.hpp`), and
// these against blst.
//
// Invariant: elements are reduced, so equal elements have equal limbs.
#pragma once

#include "limbs.hpp"
#ifndef CUZK_EMULATED
#include "chains.cuh"
#endif

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

template <class T> struct Modulus;

// The scalar field, r.
template <> struct Modulus<Fr> {
    static constexpr int LIMBS = 8;
    static constexpr uint32_t INVERSE = 0xffffffff;
    static constexpr uint64_t INVERSE_64 = 0xfffffffeffffffff;

    static CUZK_FN constexpr Fr value() {
        return {{0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402, 0x09a1d805, 0x3339d808,
                 0x299d7d48, 0x73eda753}};
    }
    static CUZK_FN constexpr Fr one() {
        return {{0xfffffffe, 0x00000001, 0x00034802, 0x5884b7fa, 0xecbc4ff5, 0x998c4fef,
                 0xacc5056f, 0x1824b159}};
    }
    // 2^512
    static CUZK_FN constexpr Fr r_squared() {
        return {{0xf3f29c6d, 0xc999e990, 0x87925c23, 0x2b6cedcb, 0x7254398f, 0x05d31496,
                 0x9f59ff11, 0x0748d9d9}};
    }
};

// The base field, p.
template <> struct Modulus<Fp> {
    static constexpr int LIMBS = 12;
    static constexpr uint32_t INVERSE = 0xfffcfffd;
    static constexpr uint64_t INVERSE_64 = 0x89f3fffcfffcfffd;

    static CUZK_FN constexpr Fp value() {
        return {{0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe, 0xf6b0f624, 0x6730d2a0,
                 0xf38512bf, 0x64774b84, 0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea}};
    }
    static CUZK_FN constexpr Fp one() {
        return {{0x0002fffd, 0x76090000, 0xc40c0002, 0xebf4000b, 0x53c758ba, 0x5f489857,
                 0x70525745, 0x77ce5853, 0xa256ec6d, 0x5c071a97, 0xfa80e493, 0x15f65ec3}};
    }
    // 2^768
    static CUZK_FN constexpr Fp r_squared() {
        return {{0x1c341746, 0xf4df1f34, 0x09d104f1, 0x0a76e6a6, 0x4c95b6d5, 0x8de5476c,
                 0x939d83c0, 0x67eb88a9, 0xb519952d, 0x9a793e85, 0x92cae3aa, 0x11988fe5}};
    }
};

#ifndef CUZK_EMULATED
// −1/r is −1 modulo 2^32, and the device's compiler must not know this. Otherwise
// it would multiply by the negated limb itself, and a negated operand keeps it from
// joining the halves of a product (48 more multiplications than 138).
static __constant__ uint32_t FR_INVERSE = Modulus<Fr>::INVERSE;
#endif

template <class T> CUZK_FN uint32_t inverse() {
#ifdef __CUDA_ARCH__
    if (Modulus<T>::LIMBS == Modulus<Fr>::LIMBS) {
        return FR_INVERSE;
    }
#endif
    return Modulus<T>::INVERSE;
}

// a·b / 2^(32·LIMBS), by these chains.
template <class C, class T> CUZK_FN T mul_with(const T &a, const T &b) {
    const T m = Modulus<T>::value();
    T product;
    montgomery_product<C, Modulus<T>::LIMBS>(product.limbs, a.limbs, b.limbs, m.limbs,
                                             inverse<T>());
    return product;
}

// a·b + c·d, in Fp only: r has too many bits.
template <class C> CUZK_FN Fp mul_add_with(const Fp &a, const Fp &b, const Fp &c, const Fp &d) {
    const Fp m = Modulus<Fp>::value();
    Fp sum;
    montgomery_products<C, Modulus<Fp>::LIMBS>(sum.limbs, a.limbs, b.limbs, c.limbs, d.limbs,
                                               m.limbs, inverse<Fp>());
    return sum;
}

template <class C, class T> CUZK_FN T add_with(T a, const T &b) {
    const T m = Modulus<T>::value();
    C::add(a.limbs, b.limbs); // 2m has no more limbs than m
    T reduced = a;
    const uint32_t borrow = C::subtract(reduced.limbs, m.limbs);
    CUZK_UNROLL
    for (int i = 0; i < Modulus<T>::LIMBS; ++i) {
        reduced.limbs[i] = borrow != 0 ? a.limbs[i] : reduced.limbs[i];
    }
    return reduced;
}

template <class C, class T> CUZK_FN T sub_with(T a, const T &b) {
    const T m = Modulus<T>::value();
    const uint32_t borrow = C::subtract(a.limbs, b.limbs);
    T back;
    CUZK_UNROLL
    for (int i = 0; i < Modulus<T>::LIMBS; ++i) {
        back.limbs[i] = m.limbs[i] & borrow;
    }
    C::add(a.limbs, back.limbs);
    return a;
}

// The host's product: the same method, one row at a time, with limbs of 64 bits.
template <class T> inline T host_mul(const T &a, const T &b) {
    using M = Modulus<T>;
    constexpr int N = M::LIMBS / 2;
    using Wide = unsigned __int128;
    const T modulus = M::value();
    uint64_t x[N], y[N], m[N], sum[N + 1] = {};
    std::memcpy(x, a.limbs, sizeof x);
    std::memcpy(y, b.limbs, sizeof y);
    std::memcpy(m, modulus.limbs, sizeof m);
    for (int i = 0; i < N; ++i) {
        Wide carry = 0;
        for (int k = 0; k < N; ++k) {
            carry += static_cast<Wide>(x[k]) * y[i] + sum[k];
            sum[k] = static_cast<uint64_t>(carry);
            carry >>= 64;
        }
        sum[N] += static_cast<uint64_t>(carry);
        const uint64_t multiple = sum[0] * M::INVERSE_64;
        carry = (static_cast<Wide>(multiple) * m[0] + sum[0]) >> 64;
        for (int k = 1; k < N; ++k) {
            carry += static_cast<Wide>(multiple) * m[k] + sum[k];
            sum[k - 1] = static_cast<uint64_t>(carry);
            carry >>= 64;
        }
        carry += sum[N];
        sum[N - 1] = static_cast<uint64_t>(carry);
        sum[N] = static_cast<uint64_t>(carry >> 64);
    }
    T product, reduced;
    std::memcpy(product.limbs, sum, sizeof product.limbs);
    reduced = product;
    const bool is_less = PlainChains<M::LIMBS>::subtract(reduced.limbs, modulus.limbs) != 0;
    return is_less ? product : reduced;
}

template <class T> CUZK_FN T mul(const T &a, const T &b) {
#ifdef __CUDA_ARCH__
    return mul_with<Chains<Modulus<T>::LIMBS>>(a, b);
#else
    return host_mul(a, b);
#endif
}

template <class T> CUZK_FN T add(const T &a, const T &b) {
#ifdef __CUDA_ARCH__
    return add_with<Chains<Modulus<T>::LIMBS>>(a, b);
#else
    return add_with<PlainChains<Modulus<T>::LIMBS>>(a, b);
#endif
}

template <class T> CUZK_FN T sub(const T &a, const T &b) {
#ifdef __CUDA_ARCH__
    return sub_with<Chains<Modulus<T>::LIMBS>>(a, b);
#else
    return sub_with<PlainChains<Modulus<T>::LIMBS>>(a, b);
#endif
}

template <class T> CUZK_FN T sqr(const T &a) { return mul(a, a); }

template <class T> CUZK_FN bool is_zero(const T &a) {
    uint32_t any = 0;
    CUZK_UNROLL
    for (int i = 0; i < Modulus<T>::LIMBS; ++i) {
        any |= a.limbs[i];
    }
    return any == 0;
}

template <class T> CUZK_FN bool is_equal(const T &a, const T &b) {
    uint32_t any = 0;
    CUZK_UNROLL
    for (int i = 0; i < Modulus<T>::LIMBS; ++i) {
        any |= a.limbs[i] ^ b.limbs[i];
    }
    return any == 0;
}

template <class T> CUZK_FN T zero_of() { return T{}; }

// The one of a field, by its type.
template <class T> struct One {
    static CUZK_FN T value() { return Modulus<T>::one(); }
};

template <class T> CUZK_FN T neg(const T &a) { return sub(T{}, a); }

// a·b + c·d
CUZK_FN Fp mul_add(const Fp &a, const Fp &b, const Fp &c, const Fp &d) {
#ifdef __CUDA_ARCH__
    return mul_add_with<Chains<Modulus<Fp>::LIMBS>>(a, b, c, d);
#else
    return add(mul(a, b), mul(c, d));
#endif
}

// a·b − c·d
CUZK_FN Fp mul_sub(const Fp &a, const Fp &b, const Fp &c, const Fp &d) {
    return mul_add(a, b, neg(c), d);
}

// The value as an integer below the modulus.
template <class T> CUZK_FN T to_canonical(const T &a) {
    T one{};
    one.limbs[0] = 1;
    return mul(a, one);
}

// An integer below the modulus, in Montgomery form.
template <class T> CUZK_FN T to_montgomery(const T &a) {
    return mul(a, Modulus<T>::r_squared());
}

// ---- Fp2 -----------------------------------------------------------------

template <> struct One<Fp2> {
    static CUZK_FN Fp2 value() { return {Modulus<Fp>::one(), Fp{}}; }
};

CUZK_FN Fp2 add(const Fp2 &a, const Fp2 &b) { return {add(a.c0, b.c0), add(a.c1, b.c1)}; }

CUZK_FN Fp2 sub(const Fp2 &a, const Fp2 &b) { return {sub(a.c0, b.c0), sub(a.c1, b.c1)}; }

// Two sums of two products: 888 multiplications of 32 bits. Karatsuba's three
// products take 900, and more operations around them.
CUZK_CALL Fp2 mul(const Fp2 &a, const Fp2 &b) {
    return {mul_sub(a.c0, b.c0, a.c1, b.c1), mul_add(a.c0, b.c1, a.c1, b.c0)};
}

CUZK_FN Fp2 mul_sub(const Fp2 &a, const Fp2 &b, const Fp2 &c, const Fp2 &d) {
    return sub(mul(a, b), mul(c, d));
}

// (c0 + c1)·(c0 − c1) and 2·c0·c1.
CUZK_CALL Fp2 sqr(const Fp2 &a) {
    const Fp product = mul(a.c0, a.c1);
    return {mul(add(a.c0, a.c1), sub(a.c0, a.c1)), add(product, product)};
}

CUZK_FN bool is_zero(const Fp2 &a) { return is_zero(a.c0) && is_zero(a.c1); }

CUZK_FN bool is_equal(const Fp2 &a, const Fp2 &b) {
    return is_equal(a.c0, b.c0) && is_equal(a.c1, b.c1);
}

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
