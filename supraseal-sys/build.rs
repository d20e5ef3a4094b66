//! Builds the C++ side.
fn main() {}
