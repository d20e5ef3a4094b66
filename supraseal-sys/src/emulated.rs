//! The device code, compiled as plain C++ and run on the host, for the tests of the
//! kernels.
//!
//! Compiled only with the feature `test-hooks`, and not for use by other crates. It is no
//! backend: it is slow and allocates.
#![allow(missing_docs)]

mod evaluate;
mod ffi;
mod field;
mod launch;
mod msm;
mod transform;

pub use evaluate::{Program, Witness, evaluate};
pub use ffi::Fp;
pub use field::{Operation, fp, fp_mul_add, fr};
pub use launch::{blocks_run, kernels_launched, load_kernels, scan, self_test};
pub use msm::{Kernels, NO_BASE, Query, Scalars, scratch_grows, wide_bases, window_bits};
pub use transform::{RootsShape, quotient, transform};
