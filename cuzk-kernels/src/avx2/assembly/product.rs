//! Products of two numbers, and squares. A square takes the products of two different limbs once
//! and doubles them.

#![allow(unsafe_code)] // assembly that reads and writes memory

use crate::avx2::limbs::{CONSTANTS, Limbs, Wide};
use crate::avx2::scalar_limbs::{SCALAR_CONSTANTS, ScalarLimbs, WideScalar};

/// Products of limb `i` of the first factor: those that are the first of their columns, and the
/// others. Each is a column and a limb of the second factor. Columns are `new`, or there is
/// `more` in them.
macro_rules! row {
    (new $i:tt; [$($first:tt $first_limb:tt),*] [$($column:tt $limb:tt),*]) => {
        concat!(
            "vmovapd ymm9, [{a} + 32*", $i, "]\n",
            $(first_product!($first, "ymm9", limb!($first_limb)),)*
            $(add_product!($column, "ymm9", limb!($limb)),)*
        )
    };
    (more $i:tt; [$($first:tt $first_limb:tt),*] [$($column:tt $limb:tt),*]) => {
        concat!(
            "vmovapd ymm9, [{a} + 32*", $i, "]\n",
            $(add_product!($first, "ymm9", limb!($first_limb)),)*
            $(add_product!($column, "ymm9", limb!($limb)),)*
        )
    };
}

/// Loads columns in which there is more.
macro_rules! open {
    (new; $($columns:tt)*) => {
        ""
    };
    (more; $($columns:tt)*) => {
        fetch!($($columns)*)
    };
}

/// All products of eight limbs.
macro_rules! products {
    ($columns:tt) => {
        concat!(
            open!($columns; 0 0, 1 1, 2 2, 3 3),
            load!(0 1 2 3),
            row!($columns 0; [0 0, 1 1, 2 2, 3 3] []),
            row!($columns 1; [] [1 0, 2 1, 3 2]),
            row!($columns 2; [] [2 0, 3 1]),
            row!($columns 3; [] [3 0]),
            store!(0 0, 1 1, 2 2, 3 3),
            open!($columns; 0 4, 1 5, 2 6, 3 7),
            load!(4 5 6 7), row!($columns 0; [0 4, 1 5, 2 6, 3 7] []),
            load!(3), row!($columns 1; [] [0 3, 1 4, 2 5, 3 6]),
            load!(2), row!($columns 2; [] [0 2, 1 3, 2 4, 3 5]),
            load!(1), row!($columns 3; [] [0 1, 1 2, 2 3, 3 4]),
            load!(0), row!($columns 4; [] [0 0, 1 1, 2 2, 3 3]),
            row!($columns 5; [] [1 0, 2 1, 3 2]),
            row!($columns 6; [] [2 0, 3 1]),
            row!($columns 7; [] [3 0]),
            store!(0 4, 1 5, 2 6, 3 7),
            open!($columns; 0 8, 1 9, 2 10, 3 11),
            load!(4 5 6 7), row!($columns 1; [0 7] []),
            row!($columns 2; [1 7] [0 6]),
            row!($columns 3; [2 7] [0 5, 1 6]),
            row!($columns 4; [3 7] [0 4, 1 5, 2 6]),
            load!(3), row!($columns 5; [] [0 3, 1 4, 2 5, 3 6]),
            load!(2), row!($columns 6; [] [0 2, 1 3, 2 4, 3 5]),
            load!(1), row!($columns 7; [] [0 1, 1 2, 2 3, 3 4]),
            store!(0 8, 1 9, 2 10, 3 11),
            open!($columns; 0 12, 1 13, 2 14),
            load!(5 6 7), row!($columns 5; [0 7] []),
            row!($columns 6; [1 7] [0 6]),
            row!($columns 7; [2 7] [0 5, 1 6]),
            store!(0 12, 1 13, 2 14),
        )
    };
}

/// The product of carried numbers, one of which may have limbs below 2^48.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(in crate::avx2) fn product(a: &Limbs, b: &Limbs, to: &mut Wide) {
    // SAFETY: reads eight limbs at `a` and `b`, and the constants at `k`; writes the columns at
    // `w`. All four are borrowed and aligned.
    unsafe {
        run!(
            ["vmovapd ymm11, [{k} + 32*9]", products!(new)]
            a = in(reg) a.as_ptr(),
            b = in(reg) b.as_ptr(),
            w = in(reg) to.as_mut_ptr(),
            k = in(reg) std::ptr::from_ref(&CONSTANTS),
        );
    }
}

/// Adds the product of carried numbers to that of others.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(in crate::avx2) fn add_product(a: &Limbs, b: &Limbs, to: &mut Wide) {
    // SAFETY: as in `product`, without the constants.
    unsafe {
        run!(
            [products!(more)]
            a = in(reg) a.as_ptr(),
            b = in(reg) b.as_ptr(),
            w = in(reg) to.as_mut_ptr(),
        );
    }
}

/// The product of scalars. The limbs of `b` are carried, and those of `a` are below 2^49.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(in crate::avx2) fn product_scalars(a: &ScalarLimbs, b: &ScalarLimbs, to: &mut WideScalar) {
    // SAFETY: as in `product`, with six limbs.
    unsafe {
        run!(
            [
                "vmovapd ymm11, [{k} + 32*9]",
                load!(0 1 2 3),
                row!(new 0; [0 0, 1 1, 2 2, 3 3] []),
                row!(new 1; [] [1 0, 2 1, 3 2]),
                row!(new 2; [] [2 0, 3 1]),
                row!(new 3; [] [3 0]),
                store!(0 0, 1 1, 2 2, 3 3),
                load!(4 5), row!(new 0; [0 4, 1 5] []),
                load!(3), row!(new 1; [2 5] [0 3, 1 4]),
                load!(2), row!(new 2; [3 5] [0 2, 1 3, 2 4]),
                load!(1), row!(new 3; [] [0 1, 1 2, 2 3, 3 4]),
                load!(0), row!(new 4; [] [0 0, 1 1, 2 2, 3 3]),
                row!(new 5; [] [1 0, 2 1, 3 2]),
                store!(0 4, 1 5, 2 6, 3 7),
                load!(3 4 5), row!(new 3; [0 5] []),
                row!(new 4; [1 5] [0 4]),
                row!(new 5; [2 5] [0 3, 1 4]),
                store!(0 8, 1 9, 2 10),
            ]
            a = in(reg) a.as_ptr(),
            b = in(reg) b.as_ptr(),
            w = in(reg) to.as_mut_ptr(),
            k = in(reg) std::ptr::from_ref(&SCALAR_CONSTANTS),
        );
    }
}

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
