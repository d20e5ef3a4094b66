//! Squares. Products of two different limbs are taken once and doubled.

#![allow(unsafe_code)] // assembly that reads and writes memory

use crate::avx2::limbs::{CONSTANTS, Limbs, Wide};

/// The memory of a limb.
macro_rules! at {
    ($limb:tt) => {
        concat!("[{a} + 32*", $limb, "]")
    };
}

/// Products of limb `i` with later limbs, which count twice: those that begin columns, and the
/// others. The last list has the column of its square, unless that begins one.
macro_rules! square_row {
    ($i:tt; [$($first:tt $first_limb:tt),*] [$($column:tt $limb:tt),*] [$($square:tt)?]) => {
        concat!(
            "vmovapd ymm9, [{a} + 32*", $i, "]\n",
            "vaddpd ymm10, ymm9, ymm9\n",
            $(first_product!($first, "ymm10", at!($first_limb)),)*
            $(add_product!($column, "ymm10", at!($limb)),)*
            $(add_product!($square, "ymm9", "ymm9"),)?
        )
    };
}

/// Begins a column with the square of a limb.
macro_rules! first_square {
    ($column:tt $i:tt) => {
        concat!(
            "vmovapd ymm9, [{a} + 32*",
            $i,
            "]\n",
            first_product!($column, "ymm9", "ymm9"),
        )
    };
}

/// The square of a carried number.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(in crate::avx2) fn square(a: &Limbs, to: &mut Wide) {
    // SAFETY: as in `product`, without a second factor.
    unsafe {
        run!(
            [
                "vmovapd ymm11, [{k} + 32*9]",
                first_square!(0 0),
                square_row!(0; [1 1, 2 2, 3 3] [] []),
                square_row!(1; [] [3 2] [2]),
                store!(0 0, 1 1, 2 2, 3 3),
                square_row!(0; [0 4, 1 5, 2 6, 3 7] [] []),
                square_row!(1; [] [0 3, 1 4, 2 5, 3 6] []),
                square_row!(2; [] [1 3, 2 4, 3 5] [0]),
                square_row!(3; [] [3 4] [2]),
                store!(0 4, 1 5, 2 6, 3 7),
                square_row!(1; [0 7] [] []),
                square_row!(2; [1 7] [0 6] []),
                square_row!(3; [2 7] [0 5, 1 6] []),
                square_row!(4; [3 7] [1 5, 2 6] [0]),
                square_row!(5; [] [3 6] [2]),
                store!(0 8, 1 9, 2 10, 3 11),
                square_row!(5; [0 7] [] []),
                square_row!(6; [1 7] [] [0]),
                first_square!(2 7),
                store!(0 12, 1 13, 2 14),
            ]
            a = in(reg) a.as_ptr(),
            w = in(reg) to.as_mut_ptr(),
            k = in(reg) std::ptr::from_ref(&CONSTANTS),
        );
    }
}
