// Sums with carries, in the device's own instructions: the only inline assembly.
// `limbs.hpp` defines each function and has its plain twin.
//
// One asm statement is one chain, because nothing keeps the carry flag from one
// statement to the next. ptxas joins a mad.lo.cc and the madc.hi.cc after it into
// one wide multiply-add.
//
// Invariant: every output is an early clobber (&). A chain writes its first outputs
// before it reads its last inputs. Without it, an input that is known to have the
// value of another operand would get that operand's register.
#pragma once

#include "limbs.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

template <> struct Chains<8> {
    static __device__ __forceinline__ uint32_t add_products(uint32_t *sum, const uint32_t *a,
                                                            uint32_t b) {
        uint32_t carry;
        asm("mad.lo.cc.u32 %0, %9, %13, %0; "
            "madc.hi.cc.u32 %1, %9, %13, %1; "
            "madc.lo.cc.u32 %2, %10, %13, %2; "
            "madc.hi.cc.u32 %3, %10, %13, %3; "
            "madc.lo.cc.u32 %4, %11, %13, %4; "
            "madc.hi.cc.u32 %5, %11, %13, %5; "
            "madc.lo.cc.u32 %6, %12, %13, %6; "
            "madc.hi.cc.u32 %7, %12, %13, %7; "
            "addc.u32 %8, 0, 0; "
            : "+&r"(sum[0]), "+&r"(sum[1]), "+&r"(sum[2]), "+&r"(sum[3]), "+&r"(sum[4]),
              "+&r"(sum[5]), "+&r"(sum[6]), "+&r"(sum[7]), "=&r"(carry)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(b));
        return carry;
    }

    static __device__ __forceinline__ void shift_add_products(uint32_t *sum, uint32_t *low,
                                                              const uint32_t *a, uint32_t b) {
        uint32_t shifted[8];
        asm("add.cc.u32 %8, %8, %9; "
            "madc.lo.cc.u32 %0, %16, %20, %10; "
            "madc.hi.cc.u32 %1, %16, %20, %11; "
            "madc.lo.cc.u32 %2, %17, %20, %12; "
            "madc.hi.cc.u32 %3, %17, %20, %13; "
            "madc.lo.cc.u32 %4, %18, %20, %14; "
            "madc.hi.cc.u32 %5, %18, %20, %15; "
            "madc.lo.cc.u32 %6, %19, %20, 0; "
            "madc.hi.u32 %7, %19, %20, 0; "
            : "=&r"(shifted[0]), "=&r"(shifted[1]), "=&r"(shifted[2]), "=&r"(shifted[3]),
              "=&r"(shifted[4]), "=&r"(shifted[5]), "=&r"(shifted[6]), "=&r"(shifted[7]),
              "+&r"(*low)
            : "r"(sum[1]), "r"(sum[2]), "r"(sum[3]), "r"(sum[4]), "r"(sum[5]), "r"(sum[6]),
              "r"(sum[7]), "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(b));
        CUZK_UNROLL
        for (int i = 0; i < 8; ++i) {
            sum[i] = shifted[i];
        }
    }

    static __device__ __forceinline__ uint32_t add(uint32_t *a, const uint32_t *b) {
        uint32_t carry;
        asm("add.cc.u32 %0, %0, %9; "
            "addc.cc.u32 %1, %1, %10; "
            "addc.cc.u32 %2, %2, %11; "
            "addc.cc.u32 %3, %3, %12; "
            "addc.cc.u32 %4, %4, %13; "
            "addc.cc.u32 %5, %5, %14; "
            "addc.cc.u32 %6, %6, %15; "
            "addc.cc.u32 %7, %7, %16; "
            "addc.u32 %8, 0, 0; "
            : "+&r"(a[0]), "+&r"(a[1]), "+&r"(a[2]), "+&r"(a[3]), "+&r"(a[4]), "+&r"(a[5]),
              "+&r"(a[6]), "+&r"(a[7]), "=&r"(carry)
            : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]),
              "r"(b[7]));
        return carry;
    }

    static __device__ __forceinline__ uint32_t subtract(uint32_t *a, const uint32_t *b) {
        uint32_t carry;
        asm("sub.cc.u32 %0, %0, %9; "
            "subc.cc.u32 %1, %1, %10; "
            "subc.cc.u32 %2, %2, %11; "
            "subc.cc.u32 %3, %3, %12; "
            "subc.cc.u32 %4, %4, %13; "
            "subc.cc.u32 %5, %5, %14; "
            "subc.cc.u32 %6, %6, %15; "
            "subc.cc.u32 %7, %7, %16; "
            "subc.u32 %8, 0, 0; "
            : "+&r"(a[0]), "+&r"(a[1]), "+&r"(a[2]), "+&r"(a[3]), "+&r"(a[4]), "+&r"(a[5]),
              "+&r"(a[6]), "+&r"(a[7]), "=&r"(carry)
            : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]),
              "r"(b[7]));
        return carry;
    }
};

template <> struct Chains<12> {
    static __device__ __forceinline__ uint32_t add_products(uint32_t *sum, const uint32_t *a,
                                                            uint32_t b) {
        uint32_t carry;
        asm("mad.lo.cc.u32 %0, %13, %19, %0; "
            "madc.hi.cc.u32 %1, %13, %19, %1; "
            "madc.lo.cc.u32 %2, %14, %19, %2; "
            "madc.hi.cc.u32 %3, %14, %19, %3; "
            "madc.lo.cc.u32 %4, %15, %19, %4; "
            "madc.hi.cc.u32 %5, %15, %19, %5; "
            "madc.lo.cc.u32 %6, %16, %19, %6; "
            "madc.hi.cc.u32 %7, %16, %19, %7; "
            "madc.lo.cc.u32 %8, %17, %19, %8; "
            "madc.hi.cc.u32 %9, %17, %19, %9; "
            "madc.lo.cc.u32 %10, %18, %19, %10; "
            "madc.hi.cc.u32 %11, %18, %19, %11; "
            "addc.u32 %12, 0, 0; "
            : "+&r"(sum[0]), "+&r"(sum[1]), "+&r"(sum[2]), "+&r"(sum[3]), "+&r"(sum[4]),
              "+&r"(sum[5]), "+&r"(sum[6]), "+&r"(sum[7]), "+&r"(sum[8]), "+&r"(sum[9]),
              "+&r"(sum[10]), "+&r"(sum[11]), "=&r"(carry)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]), "r"(a[10]), "r"(b));
        return carry;
    }

    static __device__ __forceinline__ void shift_add_products(uint32_t *sum, uint32_t *low,
                                                              const uint32_t *a, uint32_t b) {
        uint32_t shifted[12];
        asm("add.cc.u32 %12, %12, %13; "
            "madc.lo.cc.u32 %0, %24, %30, %14; "
            "madc.hi.cc.u32 %1, %24, %30, %15; "
            "madc.lo.cc.u32 %2, %25, %30, %16; "
            "madc.hi.cc.u32 %3, %25, %30, %17; "
            "madc.lo.cc.u32 %4, %26, %30, %18; "
            "madc.hi.cc.u32 %5, %26, %30, %19; "
            "madc.lo.cc.u32 %6, %27, %30, %20; "
            "madc.hi.cc.u32 %7, %27, %30, %21; "
            "madc.lo.cc.u32 %8, %28, %30, %22; "
            "madc.hi.cc.u32 %9, %28, %30, %23; "
            "madc.lo.cc.u32 %10, %29, %30, 0; "
            "madc.hi.u32 %11, %29, %30, 0; "
            : "=&r"(shifted[0]), "=&r"(shifted[1]), "=&r"(shifted[2]), "=&r"(shifted[3]),
              "=&r"(shifted[4]), "=&r"(shifted[5]), "=&r"(shifted[6]), "=&r"(shifted[7]),
              "=&r"(shifted[8]), "=&r"(shifted[9]), "=&r"(shifted[10]), "=&r"(shifted[11]),
              "+&r"(*low)
            : "r"(sum[1]), "r"(sum[2]), "r"(sum[3]), "r"(sum[4]), "r"(sum[5]), "r"(sum[6]),
              "r"(sum[7]), "r"(sum[8]), "r"(sum[9]), "r"(sum[10]), "r"(sum[11]), "r"(a[0]),
              "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]), "r"(a[10]), "r"(b));
        CUZK_UNROLL
        for (int i = 0; i < 12; ++i) {
            sum[i] = shifted[i];
        }
    }

    static __device__ __forceinline__ uint32_t add(uint32_t *a, const uint32_t *b) {
        uint32_t carry;
        asm("add.cc.u32 %0, %0, %13; "
            "addc.cc.u32 %1, %1, %14; "
            "addc.cc.u32 %2, %2, %15; "
            "addc.cc.u32 %3, %3, %16; "
            "addc.cc.u32 %4, %4, %17; "
            "addc.cc.u32 %5, %5, %18; "
            "addc.cc.u32 %6, %6, %19; "
            "addc.cc.u32 %7, %7, %20; "
            "addc.cc.u32 %8, %8, %21; "
            "addc.cc.u32 %9, %9, %22; "
            "addc.cc.u32 %10, %10, %23; "
            "addc.cc.u32 %11, %11, %24; "
            "addc.u32 %12, 0, 0; "
            : "+&r"(a[0]), "+&r"(a[1]), "+&r"(a[2]), "+&r"(a[3]), "+&r"(a[4]), "+&r"(a[5]),
              "+&r"(a[6]), "+&r"(a[7]), "+&r"(a[8]), "+&r"(a[9]), "+&r"(a[10]), "+&r"(a[11]),
              "=&r"(carry)
            : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]),
              "r"(b[7]), "r"(b[8]), "r"(b[9]), "r"(b[10]), "r"(b[11]));
        return carry;
    }

    static __device__ __forceinline__ uint32_t subtract(uint32_t *a, const uint32_t *b) {
        uint32_t carry;
        asm("sub.cc.u32 %0, %0, %13; "
            "subc.cc.u32 %1, %1, %14; "
            "subc.cc.u32 %2, %2, %15; "
            "subc.cc.u32 %3, %3, %16; "
            "subc.cc.u32 %4, %4, %17; "
            "subc.cc.u32 %5, %5, %18; "
            "subc.cc.u32 %6, %6, %19; "
            "subc.cc.u32 %7, %7, %20; "
            "subc.cc.u32 %8, %8, %21; "
            "subc.cc.u32 %9, %9, %22; "
            "subc.cc.u32 %10, %10, %23; "
            "subc.cc.u32 %11, %11, %24; "
            "subc.u32 %12, 0, 0; "
            : "+&r"(a[0]), "+&r"(a[1]), "+&r"(a[2]), "+&r"(a[3]), "+&r"(a[4]), "+&r"(a[5]),
              "+&r"(a[6]), "+&r"(a[7]), "+&r"(a[8]), "+&r"(a[9]), "+&r"(a[10]), "+&r"(a[11]),
              "=&r"(carry)
            : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]),
              "r"(b[7]), "r"(b[8]), "r"(b[9]), "r"(b[10]), "r"(b[11]));
        return carry;
    }
};

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
