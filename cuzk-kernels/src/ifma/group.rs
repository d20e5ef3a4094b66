//! Additions in progress, one a lane.

use super::Ifma;
use super::field::coordinate::Coordinate;
use super::field::lanes::{LANES, each_lane, lanes_with};
use super::points::Point;
use crate::affine::{Addition, prefetch, prefetch_early};

/// Eight additions in progress. The fields are visible in `ifma` only, because a coordinate
/// proves the instructions: their readers have a token.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Group<C> {
    /// Denominators of the slopes, never zero.
    pub(super) denominator: C,
    /// Product of the denominators before these.
    pub(super) prefix: C,
    /// Lanes whose sum is still to be computed and stored.
    pub(super) active: u8,
    /// Lanes that double a point.
    pub(super) doubles: u8,
    /// The rest of a register.
    _rest: [u8; REGISTER_BYTES - 2],
}

/// Coordinates are of so many bytes, or a multiple.
const REGISTER_BYTES: usize = 64;

impl<C: Coordinate> Group<C> {
    pub(super) fn new(token: Ifma) -> Group<C> {
        const {
            assert!(size_of::<C>().is_multiple_of(REGISTER_BYTES));
            assert!(size_of::<Self>() == 2 * size_of::<C>() + REGISTER_BYTES);
        }
        Group {
            denominator: C::one(token),
            prefix: C::one(token),
            active: 0,
            doubles: 0,
            _rest: [0; REGISTER_BYTES - 2],
        }
    }

    /// Returns true if all lanes add different points.
    #[inline(always)]
    pub(super) fn is_usual(&self) -> bool {
        self.active == u8::MAX && self.doubles == 0
    }
}

/// An addition for each lane; a short group repeats its last.
#[inline(always)]
pub(super) fn lanes_of(chunk: &[Addition]) -> [Addition; LANES] {
    chunk.try_into().unwrap_or_else(|_| padded(chunk))
}

#[cold]
#[inline(never)]
fn padded(chunk: &[Addition]) -> [Addition; LANES] {
    each_lane(|lane| chunk[lane.min(chunk.len() - 1)])
}

/// The first `len` lanes.
#[inline(always)]
pub(super) fn active_lanes(len: usize) -> u8 {
    u8::MAX >> (LANES - len)
}

/// The lanes whose source is subtracted.
#[inline(always)]
pub(super) fn negative_lanes(token: Ifma, lanes: &[Addition; LANES]) -> u8 {
    lanes_with::<{ Addition::SIGN_BIT }>(token, &bytemuck::cast(*lanes))
}

/// Asks for the points of a later group, before they are needed.
#[inline(always)]
pub(super) fn prefetch_group<S>(
    targets: &[Point<S>],
    sources: &[Point<S>],
    batch: &[Addition],
    group: usize,
) {
    for addition in batch.chunks(LANES).nth(group).unwrap_or_default() {
        prefetch(&targets[addition.target as usize]);
        prefetch(&sources[addition.source()]);
    }
}

/// Asks for the x of the points of a later group.
#[inline(always)]
pub(super) fn prefetch_x<S>(
    targets: &[Point<S>],
    sources: &[Point<S>],
    batch: &[Addition],
    group: usize,
) {
    for addition in batch.chunks(LANES).nth(group).unwrap_or_default() {
        prefetch(&targets[addition.target as usize].x);
        prefetch(&sources[addition.source()].x);
    }
}

/// Additions whose points are asked for at a time, four times in a group.
const EARLY: usize = 2;

/// Additions of the next batch whose points were not asked for.
///
/// A core can wait for few cache lines at a time, and stands still if it asks for more. So
/// the points come while the batch before is carried out, a few between two products.
pub(super) struct Early<'a>(pub(super) &'a [Addition]);

impl Early<'_> {
    /// Asks for the points of the next additions.
    #[inline(always)]
    pub(super) fn some<S>(&mut self, targets: &[Point<S>], sources: &[Point<S>]) {
        if let Some((now, later)) = self.0.split_first_chunk::<EARLY>() {
            for addition in now {
                prefetch_early(&targets[addition.target as usize]);
                prefetch_early(&sources[addition.source()]);
            }
            self.0 = later;
        }
    }
}
