//! Products and squares in the base field, in assembly: eight elements at a
//! time, operands and results in registers.
//!
//! This is the algorithm of [`product`](super::product), written out because here the
//! choice of registers decides the speed. A store costs a Zen 4 more than a multiply-add,
//! so no intermediate value may leave the registers. The compiler inlines the Rust form
//! into its callers, and reorders its instructions until they wait for each other. As
//! written out they run at the bound, one multiply-add a cycle, even where each product
//! waits for the one before.
//!
//! Registers: `a` is in zmm0 to zmm7, columns are in zmm8 to zmm23, and multiples of the
//! modulus are in zmm24 and zmm25. The carry of a column is in zmm26. Limbs of `b` are in
//! zmm27 and zmm28. Results have limbs that are not carried.

#![allow(unsafe_code)] // assembly that reads memory

use std::arch::asm;
use std::arch::x86_64::*;

use super::lanes::LIMB_MASK;

/// The constants of a modulus that the instructions read: its limbs, −1 / modulus modulo
/// 2^52, and the mask of a limb.
#[repr(C, align(64))]
pub(in crate::ifma) struct Constants {
    limbs: [u64; 8],
    negative_inverse: u64,
    mask: u64,
}

impl Constants {
    pub(in crate::ifma) const fn new(limbs: [u64; 8], negative_inverse: u64) -> Self {
        Self {
            limbs,
            negative_inverse,
            mask: LIMB_MASK,
        }
    }
}

/// Empties registers.
macro_rules! zero {
    ($($register:literal)+) => {
        concat!($("vpxorq ", $register, ", ", $register, ", ", $register, "\n"),+)
    };
}

/// Adds halves of the products of the limbs of `a` with `b` to columns.
macro_rules! add_limbs {
    ($half:literal, $b:literal; $c0:literal $c1:literal $c2:literal $c3:literal $c4:literal $c5:literal $c6:literal $c7:literal) => {
        concat!(
            add_products!($half, $b; $c0 "zmm0" $c1 "zmm1" $c2 "zmm2" $c3 "zmm3"),
            add_products!($half, $b; $c4 "zmm4" $c5 "zmm5" $c6 "zmm6" $c7 "zmm7"),
        )
    };
}

/// Adds a half of the product of `b` with a number to each column.
macro_rules! add_products {
    ($half:literal, $b:literal; $($column:literal $number:literal)+) => {
        concat!($("vpmadd52", $half, "uq ", $column, ", ", $b, ", ", $number, "\n"),+)
    };
}

/// Adds a multiple of the modulus to columns, but not to the one below them, which it
/// clears. Instructions that need only the first column are placed among the others.
macro_rules! add_modulus {
    ($factor:literal; $c1:literal $c2:literal $c3:literal $c4:literal $c5:literal $c6:literal $c7:literal $c8:literal; $($then:tt)*) => {
        concat!(
            add_products!("l", $factor;
                $c1 "qword ptr [{p} + 8]{{1to8}}"
                $c2 "qword ptr [{p} + 16]{{1to8}}"
                $c3 "qword ptr [{p} + 24]{{1to8}}"
                $c4 "qword ptr [{p} + 32]{{1to8}}"
                $c5 "qword ptr [{p} + 40]{{1to8}}"
                $c6 "qword ptr [{p} + 48]{{1to8}}"
                $c7 "qword ptr [{p} + 56]{{1to8}}"),
            add_products!("h", $factor;
                $c1 "qword ptr [{p}]{{1to8}}"
                $c2 "qword ptr [{p} + 8]{{1to8}}"
                $c3 "qword ptr [{p} + 16]{{1to8}}"
                $c4 "qword ptr [{p} + 24]{{1to8}}"),
            $($then)*
            add_products!("h", $factor;
                $c5 "qword ptr [{p} + 32]{{1to8}}"
                $c6 "qword ptr [{p} + 40]{{1to8}}"
                $c7 "qword ptr [{p} + 48]{{1to8}}"
                $c8 "qword ptr [{p} + 56]{{1to8}}"),
        )
    };
}

/// The multiple of the modulus that clears a column.
macro_rules! factor {
    ($factor:literal, $column:literal) => {
        concat!(
            zero!($factor),
            add_products!("l", $column; $factor "qword ptr [{p} + 64]{{1to8}}"),
        )
    };
}

/// Writes the carry of a column that a multiple of the modulus clears to zmm26.
macro_rules! carried {
    ($column:literal) => {
        concat!(
            "vpaddq zmm26, ",
            $column,
            ", qword ptr [{p} + 72]{{1to8}}\n",
            "vpsraq zmm26, zmm26, 52\n",
        )
    };
}

/// The low halves of the products with the first limb of `b`.
macro_rules! first_round {
    ($b:literal, $factor:literal; $lowest:literal $($column:literal)+) => {
        concat!(
            zero!($lowest $($column)+),
            add_limbs!("l", $b; $lowest $($column)+),
            factor!($factor, $lowest),
        )
    };
}

/// Clears the lowest column, which becomes the highest. Adds the high halves of the
/// products with a limb of `b`, and the low halves of those with the next.
macro_rules! round {
    ($b:literal, $next:literal, $factor:literal, $next_factor:literal; $lowest:literal $c1:literal $($column:literal)+) => {
        concat!(
            carried!($lowest),
            zero!($lowest),
            add_limbs!("h", $b; $c1 $($column)+ $lowest),
            add_limbs!("l", $next; $c1 $($column)+ $lowest),
            "vpaddq ", $c1, ", ", $c1, ", zmm26\n",
            add_modulus!($factor; $c1 $($column)+ $lowest; factor!($next_factor, $c1),),
        )
    };
}

/// The round of the last limb of `b`.
macro_rules! last_round {
    ($b:literal, $factor:literal; $lowest:literal $c1:literal $($column:literal)+) => {
        concat!(
            carried!($lowest),
            zero!($lowest),
            add_limbs!("h", $b; $c1 $($column)+ $lowest),
            "vpaddq ", $c1, ", ", $c1, ", zmm26\n",
            add_modulus!($factor; $c1 $($column)+ $lowest;),
        )
    };
}

/// Montgomery's product of eight pairs, one limb of `b` after the other.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in crate::ifma) fn product(
    a: &[__m512i; 8],
    b: &[__m512i; 8],
    constants: &Constants,
) -> [__m512i; 8] {
    let (s0, s1, s2, s3): (__m512i, __m512i, __m512i, __m512i);
    let (s4, s5, s6, s7): (__m512i, __m512i, __m512i, __m512i);
    // SAFETY: reads eight limbs at `b`, and at `p` the constants, both of which are
    // borrowed and aligned; writes none but the registers named.
    unsafe {
        asm!(
            "vmovdqa64 zmm27, [{b}]",
            "vmovdqa64 zmm28, [{b} + 64]",
            first_round!("zmm27", "zmm24"; "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23"),
            round!("zmm27", "zmm28", "zmm24", "zmm25"; "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23"),
            "vmovdqa64 zmm27, [{b} + 128]",
            round!("zmm28", "zmm27", "zmm25", "zmm24"; "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm16"),
            "vmovdqa64 zmm28, [{b} + 192]",
            round!("zmm27", "zmm28", "zmm24", "zmm25"; "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm16" "zmm17"),
            "vmovdqa64 zmm27, [{b} + 256]",
            round!("zmm28", "zmm27", "zmm25", "zmm24"; "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm16" "zmm17" "zmm18"),
            "vmovdqa64 zmm28, [{b} + 320]",
            round!("zmm27", "zmm28", "zmm24", "zmm25"; "zmm20" "zmm21" "zmm22" "zmm23" "zmm16" "zmm17" "zmm18" "zmm19"),
            "vmovdqa64 zmm27, [{b} + 384]",
            round!("zmm28", "zmm27", "zmm25", "zmm24"; "zmm21" "zmm22" "zmm23" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20"),
            "vmovdqa64 zmm28, [{b} + 448]",
            round!("zmm27", "zmm28", "zmm24", "zmm25"; "zmm22" "zmm23" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21"),
            last_round!("zmm28", "zmm25"; "zmm23" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22"),
            p = in(reg) std::ptr::from_ref(constants),
            b = in(reg) b.as_ptr(),
            in("zmm0") a[0], in("zmm1") a[1], in("zmm2") a[2], in("zmm3") a[3],
            in("zmm4") a[4], in("zmm5") a[5], in("zmm6") a[6], in("zmm7") a[7],
            out("zmm16") s0, out("zmm17") s1, out("zmm18") s2, out("zmm19") s3,
            out("zmm20") s4, out("zmm21") s5, out("zmm22") s6, out("zmm23") s7,
            out("zmm24") _, out("zmm25") _, out("zmm26") _, out("zmm27") _, out("zmm28") _,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    [s0, s1, s2, s3, s4, s5, s6, s7]
}

/// Twice a column.
macro_rules! double {
    ($($column:literal)+) => {
        concat!($("vpaddq ", $column, ", ", $column, ", ", $column, "\n"),+)
    };
}

/// Adds halves of squares to columns.
macro_rules! add_squares {
    ($half:literal; $($column:literal $number:literal)+) => {
        concat!($("vpmadd52", $half, "uq ", $column, ", ", $number, ", ", $number, "\n"),+)
    };
}

/// Clears a column with a multiple of the modulus.
macro_rules! clear {
    ($factor:literal; $lowest:literal $c1:literal $($column:literal)+; $($then:tt)*) => {
        concat!(
            carried!($lowest),
            "vpaddq ", $c1, ", ", $c1, ", zmm26\n",
            add_modulus!($factor; $c1 $($column)+; $($then)*),
        )
    };
}

/// Montgomery's square of eight. Every product of two different limbs is taken
/// once and doubled; the reduction comes after.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in crate::ifma) fn square(a: &[__m512i; 8], constants: &Constants) -> [__m512i; 8] {
    let (s0, s1, s2, s3): (__m512i, __m512i, __m512i, __m512i);
    let (s4, s5, s6, s7): (__m512i, __m512i, __m512i, __m512i);
    // SAFETY: reads the constants at `p`, which are borrowed; writes none but the
    // registers named.
    unsafe {
        asm!(
            zero!("zmm8" "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15"),
            zero!("zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23"),
            add_products!("l", "zmm0"; "zmm9" "zmm1" "zmm10" "zmm2" "zmm11" "zmm3" "zmm12" "zmm4" "zmm13" "zmm5" "zmm14" "zmm6" "zmm15" "zmm7"),
            add_products!("h", "zmm0"; "zmm10" "zmm1" "zmm11" "zmm2" "zmm12" "zmm3" "zmm13" "zmm4" "zmm14" "zmm5" "zmm15" "zmm6" "zmm16" "zmm7"),
            add_products!("l", "zmm1"; "zmm11" "zmm2" "zmm12" "zmm3" "zmm13" "zmm4" "zmm14" "zmm5" "zmm15" "zmm6" "zmm16" "zmm7"),
            add_products!("h", "zmm1"; "zmm12" "zmm2" "zmm13" "zmm3" "zmm14" "zmm4" "zmm15" "zmm5" "zmm16" "zmm6" "zmm17" "zmm7"),
            add_products!("l", "zmm2"; "zmm13" "zmm3" "zmm14" "zmm4" "zmm15" "zmm5" "zmm16" "zmm6" "zmm17" "zmm7"),
            add_products!("h", "zmm2"; "zmm14" "zmm3" "zmm15" "zmm4" "zmm16" "zmm5" "zmm17" "zmm6" "zmm18" "zmm7"),
            add_products!("l", "zmm3"; "zmm15" "zmm4" "zmm16" "zmm5" "zmm17" "zmm6" "zmm18" "zmm7"),
            add_products!("h", "zmm3"; "zmm16" "zmm4" "zmm17" "zmm5" "zmm18" "zmm6" "zmm19" "zmm7"),
            add_products!("l", "zmm4"; "zmm17" "zmm5" "zmm18" "zmm6" "zmm19" "zmm7"),
            add_products!("h", "zmm4"; "zmm18" "zmm5" "zmm19" "zmm6" "zmm20" "zmm7"),
            add_products!("l", "zmm5"; "zmm19" "zmm6" "zmm20" "zmm7"),
            add_products!("h", "zmm5"; "zmm20" "zmm6" "zmm21" "zmm7"),
            add_products!("l", "zmm6"; "zmm21" "zmm7"),
            add_products!("h", "zmm6"; "zmm22" "zmm7"),
            double!("zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15"),
            double!("zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22"),
            add_squares!("l"; "zmm8" "zmm0" "zmm10" "zmm1" "zmm12" "zmm2" "zmm14" "zmm3" "zmm16" "zmm4" "zmm18" "zmm5" "zmm20" "zmm6" "zmm22" "zmm7"),
            add_squares!("h"; "zmm9" "zmm0" "zmm11" "zmm1" "zmm13" "zmm2" "zmm15" "zmm3" "zmm17" "zmm4" "zmm19" "zmm5" "zmm21" "zmm6" "zmm23" "zmm7"),
            factor!("zmm24", "zmm8"),
            clear!("zmm24"; "zmm8" "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16"; factor!("zmm25", "zmm9"),),
            clear!("zmm25"; "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17"; factor!("zmm24", "zmm10"),),
            clear!("zmm24"; "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18"; factor!("zmm25", "zmm11"),),
            clear!("zmm25"; "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19"; factor!("zmm24", "zmm12"),),
            clear!("zmm24"; "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20"; factor!("zmm25", "zmm13"),),
            clear!("zmm25"; "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21"; factor!("zmm24", "zmm14"),),
            clear!("zmm24"; "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22"; factor!("zmm25", "zmm15"),),
            clear!("zmm25"; "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23";),
            p = in(reg) std::ptr::from_ref(constants),
            in("zmm0") a[0], in("zmm1") a[1], in("zmm2") a[2], in("zmm3") a[3],
            in("zmm4") a[4], in("zmm5") a[5], in("zmm6") a[6], in("zmm7") a[7],
            out("zmm8") _, out("zmm9") _, out("zmm10") _, out("zmm11") _,
            out("zmm12") _, out("zmm13") _, out("zmm14") _, out("zmm15") _,
            out("zmm16") s0, out("zmm17") s1, out("zmm18") s2, out("zmm19") s3,
            out("zmm20") s4, out("zmm21") s5, out("zmm22") s6, out("zmm23") s7,
            out("zmm24") _, out("zmm25") _, out("zmm26") _,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    [s0, s1, s2, s3, s4, s5, s6, s7]
}

#[cfg(test)]
pub(super) mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::Ifma;
    use super::super::element::Modulus;
    use super::super::fp::{CONSTANTS, P};
    use super::super::lanes::{Row, load, rows, store};
    use super::super::{product as twin, wide};
    use super::*;

    /// Limbs of eight numbers: those that carry most, and random ones.
    fn numbers(rng: &mut ChaCha8Rng) -> [Row; 8] {
        std::array::from_fn(|lane| {
            Row(std::array::from_fn(|limb| match lane {
                0 => 0,
                1 => LIMB_MASK,
                2 => P::LIMBS[limb],
                3 => u64::from(limb == 0),
                _ => rng.gen_range(0..=LIMB_MASK),
            }))
        })
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(in crate::ifma) fn check(token: Ifma, a: &[__m512i; 8], b: &[__m512i; 8]) {
        let same = |got: [__m512i; 8], expected: [__m512i; 8]| {
            let words = |limbs| {
                rows(token, limbs).map(|row| {
                    let mut words = Row([0; 8]);
                    store(row, &mut words);
                    words
                })
            };
            assert_eq!(words(got), words(expected));
        };
        same(
            product(a, b, &CONSTANTS),
            twin::product_columns::<P, 8>(a, b),
        );
        same(square(a, &CONSTANTS), wide::square_columns::<P, 8>(a));
    }

    #[test]
    fn columns_are_those_of_the_form_in_rust() {
        let Some(token) = crate::testing::token() else {
            return;
        };
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        for _ in 0..200 {
            let (mut a, b) = (numbers(&mut rng), numbers(&mut rng));
            a.rotate_left(rng.gen_range(0..8));
            let (a, b) = (load(token, a.each_ref()), load(token, b.each_ref()));
            crate::ifma::field::tests::check_products(token, &a, &b);
        }
    }
}
