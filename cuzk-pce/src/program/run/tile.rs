//! Rows of all parts, a tile at a time.
//!
//! Results are collected in a tile that stays in the nearest cache, and leave it all at
//! once. So rows of shapes that take turns can be run shape by shape, and results can
//! bypass the caches.

use super::{lane::Lane, runner::Runner};
use crate::{
    eval::CHUNK_ROWS,
    program::{stretch::Stretch, walk::Walk},
    stream::Stream,
    witness::Columns,
};
use ff::PrimeField;

/// Rows of a tile. So few leave as stores that the processor completes while
/// it works on the next tile.
const TILE_ROWS: usize = 32;

/// The first rows of some, as many of them as are done.
struct Tiles<S, const N: usize> {
    values: [[S; TILE_ROWS]; N],
    filled: usize,
}

impl<S: PrimeField, const N: usize> Tiles<S, N> {
    /// Moves the tiles to the first places that are left of `out`.
    #[inline]
    fn leave<'o>(&mut self, out: &mut [&'o mut [S]; N], stream: &mut Stream<'o>) {
        for (out, tile) in out.iter_mut().zip(&self.values) {
            let (to, rest) = std::mem::take(out).split_at_mut(self.filled);
            stream.copy(&tile[..self.filled], to);
            *out = rest;
        }
        self.filled = 0;
    }
}

impl<S: PrimeField, W: Columns<S>> Runner<'_, S, W> {
    /// Evaluates the first N of A, B and C on a chunk of rows.
    pub(super) fn chunk<const N: usize>(&self, chunk: usize, mut out: [&mut [S]; N]) {
        let mut stream = Stream::new(self.past_caches);
        let first = u32::try_from(chunk * CHUNK_ROWS).unwrap_or(u32::MAX);
        let (walk, cursor) = Walk::new(self.view.grammar, first, self.prepared.drifts());
        let mut cursor = cursor as usize;
        let mut tiles = Tiles {
            values: [[S::ZERO; TILE_ROWS]; N],
            filled: 0,
        };
        for stretch in walk {
            let advance = self.advance(&stretch);
            let mut turn = 0;
            while turn < stretch.count {
                let room = TILE_ROWS.min(out.first().map_or(0, |out| out.len())) - tiles.filled;
                let count = (stretch.count - turn).min(room >> (stretch.period - 1));
                // Two shapes that take turns may be parted by the chunk's end.
                let is_parted = count == 0 && tiles.filled == 0;
                if count > 0 || is_parted {
                    let shapes = if is_parted { 1 } else { stretch.period };
                    let turns = (turn, count.max(1));
                    self.turns(&stretch, shapes, turns, (cursor, advance), &mut tiles);
                    turn += count;
                }
                if count == 0 || tiles.filled == TILE_ROWS {
                    tiles.leave(&mut out, &mut stream);
                    if out.iter().all(|out| out.is_empty()) {
                        return;
                    }
                }
            }
            cursor += stretch.count * advance;
        }
        tiles.leave(&mut out, &mut stream);
    }

    /// Auxiliary variables that a turn of a stretch allocates.
    #[inline]
    pub(super) fn advance(&self, stretch: &Stretch<'_>) -> usize {
        let terminals = stretch.terminals.iter().take(stretch.period);
        terminals
            .map(|&terminal| self.shape(terminal).advance as usize)
            .sum()
    }

    /// Some turns of the first `shapes` shapes of a stretch, before which the
    /// cursor is `cursor`, into the tiles.
    #[inline]
    fn turns<const N: usize>(
        &self,
        stretch: &Stretch<'_>,
        shapes: usize,
        (first, count): (usize, usize),
        (mut cursor, advance): (usize, usize),
        tiles: &mut Tiles<S, N>,
    ) {
        let place = tiles.filled;
        for at in 0..shapes {
            let shape = self.shape(stretch.terminals[at]);
            cursor += shape.advance as usize;
            let lane = Lane {
                stretch,
                at,
                cursor,
                advance,
                first,
                count,
            };
            for (matrix, tile) in tiles.values.iter_mut().enumerate() {
                let matrix = self.source(stretch, at, matrix);
                self.part(shape.parts[matrix], matrix, &lane, &mut tile[place + at..]);
            }
        }
        tiles.filled += count * shapes;
    }

    /// The matrix whose part on the rows is evaluated for `matrix`: C, where
    /// that is quicker and must come to the same.
    #[inline]
    fn source(&self, stretch: &Stretch<'_>, at: usize, matrix: usize) -> usize {
        // Shapes that drift have small parts, which nothing is quicker than.
        if self.is_satisfied && stretch.drift.is_none() {
            self.prepared.source(stretch.terminals[at], matrix)
        } else {
            matrix
        }
    }
}
