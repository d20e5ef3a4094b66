//! Rows of all parts, a tile at a time.
//!
//! Results are put together in a tile that stays in the nearest cache, and
//! leave it all at once: rows of shapes that take turns can so be run shape by
//! shape, and a long copy reaches memory without reading it first, which
//! single stores of a row do not.

use super::{Runner, lane::Lane};
use crate::{eval::CHUNK_ROWS, program::sequence::Stretch, witness::Columns};
use ff::PrimeField;

/// Rows of a tile. So few leave as stores that the processor completes while
/// it works on the next tile.
const TILE_ROWS: usize = 32;

/// The first rows of some, as many of them as are done.
struct Tiles<S, const N: usize> {
    values: [[S; TILE_ROWS]; N],
    filled: usize,
}

impl<S: PrimeField, W: Columns<S>> Runner<'_, S, W> {
    /// Evaluates the first N of A, B and C on a chunk of rows.
    pub(super) fn chunk<const N: usize>(&self, chunk: usize, mut out: [&mut [S]; N]) {
        let rows = out.first().map_or(0, |out| out.len());
        let first = u32::try_from(chunk * CHUNK_ROWS).unwrap_or(u32::MAX);
        let (walk, cursor) = self.view.grammar.walk(first, self.prepared.drifts());
        let mut cursor = cursor as usize;
        let mut done = 0;
        let mut tiles = Tiles {
            values: [[S::ZERO; TILE_ROWS]; N],
            filled: 0,
        };
        for stretch in walk {
            let advance = self.advance(&stretch);
            let mut turn = 0;
            while turn < stretch.count {
                let room = TILE_ROWS.min(rows - done) - tiles.filled;
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
                    for (out, tile) in out.iter_mut().zip(&tiles.values) {
                        out[done..done + tiles.filled].copy_from_slice(&tile[..tiles.filled]);
                    }
                    done += tiles.filled;
                    tiles.filled = 0;
                    if done == rows {
                        return;
                    }
                }
            }
            cursor += stretch.count * advance;
        }
        for (out, tile) in out.iter_mut().zip(&tiles.values) {
            out[done..done + tiles.filled].copy_from_slice(&tile[..tiles.filled]);
        }
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
                self.part(shape.parts[matrix], matrix, &lane, &mut tile[place + at..]);
            }
        }
        tiles.filled += count * shapes;
    }
}
