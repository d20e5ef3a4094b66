//! Products, squares and their reduction in assembly: four numbers at a time.
//!
//! [`limbs`](super::limbs) says what columns are, and the tests have a twin in plain Rust. It is
//! written out because the compiler interleaves the columns of a product until their values no
//! longer fit sixteen registers. Here a column stays in its registers until it is complete.
//! These are functions that are called: inlined, they are more than an instruction cache
//! holds. Invariant: nothing but the named memory is read or written.
//!
//! Registers: four columns have their high parts in ymm0 to ymm3 and their low parts in ymm4 to
//! ymm7. Register ymm8 is scratch, ymm9 is the first factor, and ymm10 and ymm11 are constants.
//! Limbs of the second factor are in ymm12 to ymm15.

/// The register of a column's high part.
macro_rules! high {
    (0) => {
        "ymm0"
    };
    (1) => {
        "ymm1"
    };
    (2) => {
        "ymm2"
    };
    (3) => {
        "ymm3"
    };
}

/// The register of a column's low part.
macro_rules! low {
    (0) => {
        "ymm4"
    };
    (1) => {
        "ymm5"
    };
    (2) => {
        "ymm6"
    };
    (3) => {
        "ymm7"
    };
}

/// The register of a limb of the second factor, of which four are loaded; or of a multiple of
/// the modulus.
macro_rules! limb {
    (0) => {
        "ymm12"
    };
    (1) => {
        "ymm13"
    };
    (2) => {
        "ymm14"
    };
    (3) => {
        "ymm15"
    };
    (4) => {
        "ymm12"
    };
    (5) => {
        "ymm13"
    };
    (6) => {
        "ymm14"
    };
    (7) => {
        "ymm15"
    };
}

/// Loads limbs of the second factor.
macro_rules! load {
    ($($i:tt)*) => {
        concat!($("vmovapd ", limb!($i), ", [{b} + 32*", $i, "]\n"),*)
    };
}

/// Adds a product to a column.
macro_rules! add_product {
    ($column:tt, $a:expr, $b:expr) => {
        concat!(
            "vmovapd ymm8, ",
            high!($column),
            "\n",
            "vfmadd231pd ",
            high!($column),
            ", ",
            $a,
            ", ",
            $b,
            "\n",
            "vsubpd ymm8, ymm8, ",
            high!($column),
            "\n",
            "vfmadd231pd ymm8, ",
            $a,
            ", ",
            $b,
            "\n",
            "vaddpd ",
            low!($column),
            ", ",
            low!($column),
            ", ymm8\n",
        )
    };
}

/// Begins a column with a product.
macro_rules! first_product {
    ($column:tt, $a:expr, $b:expr) => {
        concat!(
            "vmovapd ",
            high!($column),
            ", ymm11\n",
            "vfmadd231pd ",
            high!($column),
            ", ",
            $a,
            ", ",
            $b,
            "\n",
            "vsubpd ",
            low!($column),
            ", ymm11, ",
            high!($column),
            "\n",
            "vfmadd231pd ",
            low!($column),
            ", ",
            $a,
            ", ",
            $b,
            "\n",
        )
    };
}

/// Stores registers as columns.
macro_rules! store {
    ($($column:tt $to:tt),*) => {
        concat!($(
            "vmovapd [{w} + 64*", $to, "], ", high!($column), "\n",
            "vmovapd [{w} + 64*", $to, " + 32], ", low!($column), "\n",
        )*)
    };
}

/// Loads columns into registers.
macro_rules! fetch {
    ($($column:tt $from:tt),*) => {
        concat!($(
            "vmovapd ", high!($column), ", [{w} + 64*", $from, "]\n",
            "vmovapd ", low!($column), ", [{w} + 64*", $from, " + 32]\n",
        )*)
    };
}

/// Runs instructions, which may use every register of vectors, with the operands after them.
macro_rules! run {
    ([$($part:expr),* $(,)?] $($operands:tt)*) => {
        std::arch::asm!(
            $($part,)*
            $($operands)*
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
            out("ymm4") _, out("ymm5") _, out("ymm6") _, out("ymm7") _,
            out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
            out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
            options(nostack, preserves_flags),
        )
    };
}

mod product;
mod reduce;

pub(super) use product::{add_product, product, product_scalars, square};
pub(super) use reduce::{clear_low, clear_low_scalars, reduce_high, reduce_high_scalars};

#[cfg(test)]
pub(super) mod tests;
