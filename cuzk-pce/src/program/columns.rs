//! Which columns the rows have: densities, and what is proved to be boolean.
//!
//! The columns of a row that is repeated, or that drifts, go forward by a fixed number of
//! variables from turn to turn. So they are added a stretch at a time, and not row by row.
//!
//! Invariant: the sets are those of the unfolded rows.

use super::{
    folded::Folded,
    part::GENERAL,
    rows::{INPUT_BIT, Item, PROVEN, Run, Shape},
    stretch::Stretch,
    walk::Walk,
};
use crate::density::{Densities, Density};
use ff::PrimeField;

/// The turns of one of the shapes of a stretch.
struct Turns<'a> {
    stretch: Stretch<'a>,
    /// Which of the shapes that take turns.
    at: usize,
    /// The shape of the first turn, and the cursor there.
    shape: Shape,
    cursor: usize,
    /// How far the cursor goes from turn to turn.
    advance: usize,
}

/// Returns the auxiliary variables that the rows prove to be 0 or 1.
pub(super) fn boolean_columns<S: PrimeField>(folded: &Folded<S>) -> Density {
    let view = folded.tables.view();
    let mut columns = Density::new(folded.dimensions.num_aux as usize);
    for_each_turns(folded, |turns| {
        // Shapes that drift prove what they prove one by one.
        let (together, alone) = match turns.stretch.drift {
            None => (turns.stretch.count, 1),
            Some(_) => (1, turns.stretch.count),
        };
        for turn in 0..alone {
            let terminal = turns.stretch.terminal(turn, turns.at);
            let boolean = view.shape(terminal).map_or(0, |shape| shape.boolean) as usize;
            if terminal & PROVEN != 0 && boolean != 0 {
                let start = turns.cursor + turn * turns.advance - boolean;
                columns.insert_every(start, together, turns.advance);
            }
        }
    });
    columns
}

/// Returns the variables that the A and B queries of a Groth16 prover range over.
pub(super) fn densities<S: PrimeField>(folded: &Folded<S>) -> Densities {
    let mut densities = Densities {
        a_aux: Density::new(folded.dimensions.num_aux as usize),
        b_input: Density::new(folded.dimensions.num_inputs as usize),
        b_aux: Density::new(folded.dimensions.num_aux as usize),
    };
    // The inputs in A are no query.
    let mut a_input = Density::new(0);
    for_each_turns(folded, |turns| {
        insert(folded, &turns, 0, [&mut a_input, &mut densities.a_aux]);
        insert(
            folded,
            &turns,
            1,
            [&mut densities.b_input, &mut densities.b_aux],
        );
    });
    densities
}

/// Adds the columns that some turns have in one matrix.
fn insert<S: PrimeField>(
    folded: &Folded<S>,
    turns: &Turns<'_>,
    matrix: usize,
    [input_set, aux_set]: [&mut Density; 2],
) {
    let view = folded.tables.view();
    let part = turns.shape.parts[matrix];
    let is_small = folded.run.part(part).variables != GENERAL;
    let items = view.part(part).iter();
    let mut variable = 0;
    for item in items.filter_map(|&words| Item::decode(words)) {
        let Run {
            first, length, gap, ..
        } = item.as_run();
        if first.col & INPUT_BIT != 0 {
            input_set.insert((first.col & !INPUT_BIT) as usize);
            continue;
        }
        let stride = match turns.stretch.drift {
            Some(drift) if is_small => drift.strides.of(turns.at, matrix, variable),
            _ => turns.advance,
        };
        variable += 1;
        let (start, count) = (turns.cursor - first.col as usize, turns.stretch.count);
        let (length, gap) = (length as usize, gap as usize);
        if length > count {
            for turn in 0..count {
                aux_set.insert_every(start + turn * stride, length, gap);
            }
        } else {
            for column in 0..length {
                aux_set.insert_every(start + column * gap, count, stride);
            }
        }
    }
}

/// Visits the turns of each shape of each stretch.
fn for_each_turns<S: PrimeField>(folded: &Folded<S>, mut visit: impl FnMut(Turns<'_>)) {
    let view = folded.tables.view();
    let shape = |terminal| view.shape(terminal).unwrap_or(Shape::EMPTY);
    let (walk, cursor) = Walk::new(view.grammar, 0, folded.run.drifts());
    let mut cursor = cursor as usize;
    for stretch in walk {
        let shapes = stretch.terminals.iter().take(stretch.period);
        let shapes = shapes.map(|&terminal| shape(terminal));
        let advance = shapes.clone().map(|shape| shape.advance as usize).sum();
        let mut first = cursor;
        for (at, shape) in shapes.enumerate() {
            first += shape.advance as usize;
            visit(Turns {
                stretch,
                at,
                shape,
                cursor: first,
                advance,
            });
        }
        cursor += stretch.count * advance;
    }
}
