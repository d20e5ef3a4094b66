//! Montgomery's reduction: the lower columns of four groups, then the upper ones of each.

#![allow(unsafe_code)] // assembly that reads and writes memory

use crate::avx2::GROUPS;
use crate::avx2::limbs::{CONSTANTS, Limbs, Wide};
use crate::avx2::scalar_limbs::{SCALAR_CONSTANTS, ScalarLimbs, WideScalar};

/// The memory of the high part (0) or the low part (32) of a group's column.
macro_rules! part {
    ($group:tt, $column:tt, $part:tt) => {
        concat!(
            "[{w} + {stride}*",
            $group,
            " + 64*",
            $column,
            " + ",
            $part,
            "]"
        )
    };
}

/// Adds the product of each group's multiple `i` with limb `j` of the modulus.
macro_rules! modulus_row {
    ($i:tt $j:tt) => {
        concat!(
            "vmovapd ymm9, [{k} + 32*",
            $j,
            "]\n",
            add_product!(0, "ymm9", part!(0, $i, 32)),
            add_product!(1, "ymm9", part!(1, $i, 32)),
            add_product!(2, "ymm9", part!(2, $i, 32)),
            add_product!(3, "ymm9", part!(3, $i, 32)),
        )
    };
}

/// An instruction for each group.
macro_rules! each_group {
    ($instruction:ident $arguments:tt) => {
        concat!(
            $instruction!(0 $arguments),
            $instruction!(1 $arguments),
            $instruction!(2 $arguments),
            $instruction!(3 $arguments),
        )
    };
}

/// Loads a column of a group.
macro_rules! fetch_group {
    ($group:tt ($column:tt)) => {
        concat!(
            "vmovapd ",
            high!($group),
            ", ",
            part!($group, $column, 0),
            "\n",
            "vmovapd ",
            low!($group),
            ", ",
            part!($group, $column, 32),
            "\n",
        )
    };
}

/// Adds the carry of the column before.
macro_rules! add_carry {
    ($group:tt ($before:tt)) => {
        concat!(
            "vfmadd231pd ",
            low!($group),
            ", ymm10, ",
            part!($group, $before, 0),
            "\n"
        )
    };
}

/// Leaves of a high part what it is more than its start.
macro_rules! excess {
    ($group:tt ()) => {
        concat!("vsubpd ", high!($group), ", ", high!($group), ", ymm11\n")
    };
}

/// The multiple of the modulus that clears a low part, modulo 2^48: the product with the
/// inverse, rounded.
macro_rules! round_factor {
    ($group:tt ()) => {
        concat!(
            "vmovapd ",
            limb!($group),
            ", ",
            low!($group),
            "\n",
            "vfmadd213pd ",
            limb!($group),
            ", ymm9, ymm11\n",
        )
    };
}

/// The rounded product itself.
macro_rules! factor_excess {
    ($group:tt ()) => {
        concat!("vsubpd ", limb!($group), ", ", limb!($group), ", ymm11\n")
    };
}

/// The rest of the product, which takes the low part's place in memory.
macro_rules! store_factor {
    ($group:tt ($column:tt)) => {
        concat!(
            "vfmsub231pd ",
            limb!($group),
            ", ",
            low!($group),
            ", ymm9\n",
            "vmovapd ",
            part!($group, $column, 32),
            ", ",
            limb!($group),
            "\n",
        )
    };
}

/// Clears the low part: what remains is a multiple of 2^48, and exact.
macro_rules! clear {
    ($group:tt ()) => {
        concat!(
            "vfmadd231pd ",
            low!($group),
            ", ",
            limb!($group),
            ", ymm9\n"
        )
    };
}

/// The carry takes the high part's place in memory.
macro_rules! store_carry {
    ($group:tt ($column:tt)) => {
        concat!(
            "vaddpd ",
            high!($group),
            ", ",
            high!($group),
            ", ",
            low!($group),
            "\n",
            "vmovapd ",
            part!($group, $column, 0),
            ", ",
            high!($group),
            "\n",
        )
    };
}

/// Clears a column of each group with a multiple of the modulus.
macro_rules! clear_column {
    ($column:tt) => {
        concat!(
            each_group!(excess()),
            "vmovapd ymm9, [{k} + 32*8]\n",
            each_group!(round_factor()),
            each_group!(factor_excess()),
            each_group!(store_factor($column)),
            "vmovapd ymm9, [{k}]\n",
            each_group!(clear()),
            each_group!(store_carry($column)),
        )
    };
}

/// Completes a column with the multiples before, and clears it. The carry comes before the last
/// product, because both wait for the last multiple.
macro_rules! low_column {
    ($before:tt $column:tt; $($i:tt $j:tt),*) => {
        concat!(
            each_group!(fetch_group ($column)),
            $(modulus_row!($i $j),)*
            each_group!(add_carry ($before)),
            modulus_row!($before 1),
            clear_column!($column),
        )
    };
}

/// Clears the lower six columns of each group.
macro_rules! six_low_columns {
    () => {
        concat!(
            "vmovapd ymm11, [{k} + 32*9]\n",
            "vmovapd ymm10, [{k} + 32*10]\n",
            each_group!(fetch_group (0)),
            clear_column!(0),
            low_column!(0 1;),
            low_column!(1 2; 0 2),
            low_column!(2 3; 0 3, 1 2),
            low_column!(3 4; 0 4, 1 3, 2 2),
            low_column!(4 5; 0 5, 1 4, 2 3, 3 2),
        )
    };
}

/// Clears the lower eight columns of each group. Their low parts become the multiples of the
/// modulus, and the high part of the last the carry.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(in crate::avx2) fn clear_low(columns: &mut [Wide; GROUPS]) {
    // SAFETY: reads the constants at `k`; reads and writes the columns at `w`. Both are
    // borrowed and aligned.
    unsafe {
        run!(
            [
                six_low_columns!(),
                low_column!(5 6; 0 6, 1 5, 2 4, 3 3, 4 2),
                low_column!(6 7; 0 7, 1 6, 2 5, 3 4, 4 3, 5 2),
            ]
            w = in(reg) columns.as_mut_ptr(),
            k = in(reg) std::ptr::from_ref(&CONSTANTS),
            stride = const size_of::<Wide>(),
        );
    }
}

/// Products of multiple `i` with limbs of the modulus.
macro_rules! multiple_row {
    ($i:tt; $($column:tt $limb:tt),*) => {
        concat!(
            "vmovapd ymm9, [{w} + 64*", $i, " + 32]\n",
            $(add_product!($column, "ymm9", limb!($limb)),)*
        )
    };
}

/// Completes columns with the carries between them.
macro_rules! settle {
    ($($column:tt $to:tt),*) => {
        concat!($(
            "vfmadd231pd ", low!($column), ", ymm10, ymm11\n",
            "vmovapd [{to} + 32*", $to, "], ", low!($column), "\n",
            "vsubpd ymm11, ", high!($column), ", [{b} + 32*9]\n",
        )*)
    };
}

/// The upper columns of a product whose lower ones were cleared, as limbs below 2^53.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(in crate::avx2) fn reduce_high(columns: &Wide, to: &mut Limbs) {
    // SAFETY: reads the columns at `w` and the constants at `b`; writes eight limbs at `to`.
    // All are borrowed and aligned.
    unsafe {
        run!(
            [
                "vmovapd ymm11, [{w} + 64*7]",
                "vmovapd ymm10, [{b} + 32*10]",
                load!(4 5 6 7),
                fetch!(0 8, 1 9, 2 10, 3 11),
                multiple_row!(1; 0 7),
                multiple_row!(2; 1 7, 0 6),
                multiple_row!(3; 2 7, 0 5, 1 6),
                multiple_row!(4; 3 7, 0 4, 1 5, 2 6),
                load!(3), multiple_row!(5; 0 3, 1 4, 2 5, 3 6),
                load!(2), multiple_row!(6; 0 2, 1 3, 2 4, 3 5),
                load!(1), multiple_row!(7; 0 1, 1 2, 2 3, 3 4),
                settle!(0 0, 1 1, 2 2, 3 3),
                load!(5 6 7),
                fetch!(0 12, 1 13, 2 14),
                multiple_row!(5; 0 7),
                multiple_row!(6; 1 7, 0 6),
                multiple_row!(7; 2 7, 0 5, 1 6),
                settle!(0 4, 1 5, 2 6),
                "vmulpd ymm11, ymm11, ymm10",
                "vmovapd [{to} + 32*7], ymm11",
            ]
            w = in(reg) columns.as_ptr(),
            b = in(reg) std::ptr::from_ref(&CONSTANTS),
            to = in(reg) to.as_mut_ptr(),
        );
    }
}

/// [`clear_low`] of the lower six columns of products of scalars.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(in crate::avx2) fn clear_low_scalars(columns: &mut [WideScalar; GROUPS]) {
    // SAFETY: as in `clear_low`.
    unsafe {
        run!(
            [six_low_columns!()]
            w = in(reg) columns.as_mut_ptr(),
            k = in(reg) std::ptr::from_ref(&SCALAR_CONSTANTS),
            stride = const size_of::<WideScalar>(),
        );
    }
}

/// [`reduce_high`] of the upper columns of a product of scalars.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(in crate::avx2) fn reduce_high_scalars(columns: &WideScalar, to: &mut ScalarLimbs) {
    // SAFETY: as in `reduce_high`, with six limbs.
    unsafe {
        run!(
            [
                "vmovapd ymm11, [{w} + 64*5]",
                "vmovapd ymm10, [{b} + 32*10]",
                load!(3 4 5),
                fetch!(0 6, 1 7, 2 8, 3 9),
                multiple_row!(1; 0 5),
                multiple_row!(2; 0 4, 1 5),
                multiple_row!(3; 0 3, 1 4, 2 5),
                load!(2), multiple_row!(4; 0 2, 1 3, 2 4, 3 5),
                load!(1), multiple_row!(5; 0 1, 1 2, 2 3, 3 4),
                settle!(0 0, 1 1, 2 2, 3 3),
                load!(5),
                fetch!(0 10),
                multiple_row!(5; 0 5),
                settle!(0 4),
                "vmulpd ymm11, ymm11, ymm10",
                "vmovapd [{to} + 32*5], ymm11",
            ]
            w = in(reg) columns.as_ptr(),
            b = in(reg) std::ptr::from_ref(&SCALAR_CONSTANTS),
            to = in(reg) to.as_mut_ptr(),
        );
    }
}
