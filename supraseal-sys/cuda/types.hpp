// Values in device memory. Their bytes are those of blst's and blstrs's types, so
// the host copies them up and down unchanged.
#pragma once

#include <cstdint>

// Both ways of compiling can be in one program, so each has its own namespace.
#ifdef CUZK_EMULATED
#define CUZK_NAMESPACE emulated
// Tests pass the host's own values, which are aligned to their limbs.
#define CUZK_ALIGNMENT 8
#else
#define CUZK_NAMESPACE card
// Read 16 bytes at a time.
#define CUZK_ALIGNMENT 16
#endif

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

// An element of the scalar field: 8 limbs, least first, times 2^256 modulo r
// (Montgomery form, a `blst_fr`) unless stated otherwise, reduced.
struct alignas(CUZK_ALIGNMENT) Fr {
    uint32_t limbs[8];
};

// An element of the base field: 12 limbs, times 2^384 modulo p (a `blst_fp`).
struct alignas(CUZK_ALIGNMENT) Fp {
    uint32_t limbs[12];
};

// c0 + c1·u with u^2 = −1 (a `blst_fp2`).
struct alignas(CUZK_ALIGNMENT) Fp2 {
    Fp c0, c1;
};

// A `blst_p1_affine` or `blst_p2_affine`: infinity is all zeros.
template <class F> struct Affine {
    F x, y;
};

// (x/zz, y/zzz) with zz^3 = zzz^2. Infinity is zz = 0, for example all zeros.
template <class F> struct Xyzz {
    F x, y, zz, zzz;
};

// A `blst_p1` or `blst_p2`: (x/z^2, y/z^3); infinity is z = 0.
template <class F> struct Jacobian {
    F x, y, z;
};

using G1Affine = Affine<Fp>;
using G1Xyzz = Xyzz<Fp>;
using G1Jacobian = Jacobian<Fp>;
using G2Affine = Affine<Fp2>;
using G2Xyzz = Xyzz<Fp2>;
using G2Jacobian = Jacobian<Fp2>;

static_assert(sizeof(Fr) == 32 && sizeof(G1Affine) == 96 && sizeof(G1Jacobian) == 144);
static_assert(sizeof(G2Affine) == 192 && sizeof(G2Xyzz) == 384);

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
