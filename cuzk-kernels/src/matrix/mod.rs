//! The scalars of a transform as a matrix: its columns, shared by tasks, and its order.

pub(crate) mod columns;
pub(crate) mod reverse;
pub(crate) mod rows;
