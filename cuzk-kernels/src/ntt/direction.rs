//! The direction of a transform.

/// The powers that a transform uses. The transforms do not scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Powers of the root.
    Forward,
    /// Powers of the inverse root.
    Inverse,
}
