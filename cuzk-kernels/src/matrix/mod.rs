//! The scalars of a transform as a matrix: its columns, shared by tasks, and its order.

#[cfg(target_arch = "x86_64")]
pub(crate) mod cells;
pub(crate) mod columns;
#[cfg(target_arch = "x86_64")]
pub(crate) mod passes;
pub(crate) mod reverse;
pub(crate) mod rows;
