//! How much memory the engine may use, and what uses it.

pub mod buffer;
pub mod footprint;
mod free;
mod leaving;
mod lender;
