//! The distinct rows of a circuit, in relative form.
//!
//! The *cursor* of a row is the number of auxiliary variables allocated when it was
//! enforced. A *part* is one matrix's share of a row. The auxiliary columns of its terms
//! count back from the cursor (1 is the variable allocated last), and inputs are absolute.
//! A *shape* is a whole row: three parts, and the advance of the cursor since the row
//! before. Distinct parts and shapes are kept once. A *terminal* names a shape.
//!
//! In the finished form the terms of a part are *items* of two words: a column, and either
//! one coefficient or a run. A run has columns that follow each other, or every second one.
//! Its coefficients stay, double or halve from each to the next. Items keep the order of
//! the terms, so a row decodes to exactly what was recorded.

use super::interner::Interner;
use ff::PrimeField;

/// Marks a column that is a public input.
pub(super) const INPUT_BIT: u32 = 1 << 31;

/// Marks an item that is a run. Then follow one bit that is set if its gap is 2, and two
/// bits of [`Step`]. Eight bits of length and twenty bits of the first coefficient's name
/// come last.
const RUN_BIT: u32 = 1 << 31;
const WIDE_GAP_BIT: u32 = 1 << 30;
const STEP_SHIFT: u32 = 28;
const LENGTH_SHIFT: u32 = 20;
const NAME_MASK: u32 = (1 << LENGTH_SHIFT) - 1;

/// Longest run, in terms: also what fits the capacity of a 255-bit field.
pub(super) const RUN_TERMS_MAX: usize = 254;

/// Two terms are as small as a run of two, and quicker.
const RUN_TERMS_MIN: usize = 3;

/// One term of a part: a column as in the module's comment, and the name of
/// its coefficient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) col: u32,
    pub(super) coefficient: u32,
}

/// How a run's coefficients go from each column to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Stay,
    Double,
    Halve,
}

/// Auxiliary columns from `first.col` towards the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: Term,
    /// How many columns.
    pub(super) length: u32,
    /// How far it is from each to the next: 1 or 2.
    pub(super) gap: u32,
    pub(super) step: Step,
}

/// One item of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    One(Term),
    Run(Run),
}

impl Item {
    pub(super) fn encode(self) -> [u32; 2] {
        match self {
            Item::One(term) => [term.col, term.coefficient],
            Item::Run(run) => {
                let step = match run.step {
                    Step::Stay => 0,
                    Step::Double => 1,
                    Step::Halve => 2,
                };
                let gap = if run.gap == 2 { WIDE_GAP_BIT } else { 0 };
                let coefficient = run.first.coefficient;
                let packed = step << STEP_SHIFT | run.length << LENGTH_SHIFT | coefficient;
                [run.first.col, RUN_BIT | gap | packed]
            }
        }
    }

    /// `None` if the words are no item.
    #[inline]
    pub(super) fn decode([col, word]: [u32; 2]) -> Option<Self> {
        if word & RUN_BIT == 0 {
            let coefficient = word;
            return Some(Item::One(Term { col, coefficient }));
        }
        let step = match word >> STEP_SHIFT & 0b11 {
            0 => Step::Stay,
            1 => Step::Double,
            2 => Step::Halve,
            _ => return None,
        };
        let gap = if word & WIDE_GAP_BIT == 0 { 1 } else { 2 };
        let length = word >> LENGTH_SHIFT & 0xff;
        let coefficient = word & NAME_MASK;
        let in_range = (2..=RUN_TERMS_MAX).contains(&(length as usize));
        let is_aux = col & INPUT_BIT == 0 && (length.max(1) - 1) * gap < col;
        (in_range && is_aux).then_some(Item::Run(Run {
            first: Term { col, coefficient },
            length,
            gap,
            step,
        }))
    }

    /// The item as a run, if only of one column.
    pub(super) fn as_run(self) -> Run {
        match self {
            Item::Run(run) => run,
            Item::One(first) => Run {
                first,
                length: 1,
                gap: 1,
                step: Step::Stay,
            },
        }
    }
}

/// Finds the runs in a part. `values` are the coefficients by name.
pub(super) fn items<S: PrimeField>(terms: &[Term], values: &[S]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut rest = terms;
    while let Some(&first) = rest.first() {
        let run = longest_run(rest, first, values);
        let length = run.length as usize;
        if length >= RUN_TERMS_MIN && first.coefficient <= NAME_MASK {
            items.push(Item::Run(run));
            rest = &rest[length..];
        } else {
            items.push(Item::One(first));
            rest = &rest[1..];
        }
    }
    items
}

/// The longest run that the terms begin with. `first` is the first of them.
fn longest_run<S: PrimeField>(terms: &[Term], first: Term, values: &[S]) -> Run {
    let value = |term: Term| values[term.coefficient as usize];
    let goes_on = |w: &[Term], gap, step| {
        let is_aux = (w[0].col | w[1].col) & INPUT_BIT == 0;
        let is_next = is_aux && w[0].col == w[1].col + gap;
        is_next
            && match step {
                Step::Stay => w[0].coefficient == w[1].coefficient,
                Step::Double => value(w[0]).double() == value(w[1]),
                Step::Halve => value(w[0]) == value(w[1]).double(),
            }
    };
    let mut longest = Item::One(first).as_run();
    for gap in [1, 2] {
        for step in [Step::Double, Step::Halve, Step::Stay] {
            let more = terms.windows(2).take(RUN_TERMS_MAX - 1);
            let more = more.take_while(|w| goes_on(w, gap, step)).zip(0u32..);
            let length = more.last().map_or(1, |(_, at)| at + 2);
            if length > longest.length {
                longest = Run {
                    first,
                    length,
                    gap,
                    step,
                };
            }
        }
    }
    longest
}

/// A distinct row: five words in the finished form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Auxiliary variables allocated since the row before.
    pub(super) advance: u32,
    /// Names of its parts in A, B and C.
    pub(super) parts: [u32; 3],
    /// The column that this row proves to be 0 or 1 if [`PROVEN`] is set in the terminal,
    /// counted back from the cursor. 0 if the row proves none.
    pub(super) boolean: u32,
}

/// Set in a terminal if the row proves its shape's `boolean` column. The rest
/// of a terminal is twice the number of its shape.
pub(super) const PROVEN: u32 = 1;

impl Shape {
    /// A row without terms.
    pub(super) const EMPTY: Shape = Shape {
        advance: 0,
        parts: [u32::MAX; 3],
        boolean: 0,
    };

    pub(super) fn encode(self) -> [u32; 5] {
        let [a, b, c] = self.parts;
        [self.advance, a, b, c, self.boolean]
    }

    #[inline]
    pub(super) fn decode([advance, a, b, c, boolean]: [u32; 5]) -> Self {
        Shape {
            advance,
            parts: [a, b, c],
            boolean,
        }
    }
}

/// Returns the terms of a part.
pub(super) fn terms(parts: &Interner, part: u32) -> Vec<Term> {
    let words = parts.get(part).unwrap_or(&[]);
    let (pairs, _) = words.as_chunks::<2>();
    pairs
        .iter()
        .map(|&[col, coefficient]| Term { col, coefficient })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::Scalar;
    use proptest::prelude::*;

    /// Coefficient names 0..16 are powers of two up and down again, then 3.
    fn values() -> Vec<Scalar> {
        let powers = [1, 2, 4, 8, 16, 32, 64, 128, 64, 32, 16, 8, 4, 2, 1, 3];
        powers.map(Scalar::from).to_vec()
    }

    fn expand(item: Item) -> Vec<(u32, Scalar)> {
        let values = values();
        let value = |term: Term| values[term.coefficient as usize];
        let run = item.as_run();
        let mut coefficient = value(run.first);
        let mut terms = vec![];
        for k in 0..run.length {
            terms.push((run.first.col - k * run.gap, coefficient));
            coefficient = match run.step {
                Step::Stay => coefficient,
                Step::Double => coefficient.double(),
                Step::Halve => coefficient * Scalar::from(2).invert().unwrap(),
            };
        }
        terms
    }

    use ff::Field;

    proptest! {
        #[test]
        fn items_stand_for_the_terms(
            start in 20..1_000u32,
            terms in prop::collection::vec((prop_oneof![4 => Just(1u32), 3 => Just(2u32), 1 => 3..4u32], 0..16u32, 0..8u32), 0..18)
        ) {
            let mut col = start + 100;
            let mut coefficient = 0;
            let terms: Vec<_> = terms
                .into_iter()
                .map(|(gap, jump, jumps)| {
                    col -= gap;
                    coefficient = if jumps == 0 { jump } else { (coefficient + 1) % 16 };
                    Term { col, coefficient }
                })
                .collect();
            let items = items(&terms, &values());
            let back: Vec<_> = items.iter().copied().flat_map(expand).collect();
            let expected: Vec<_> = terms
                .iter()
                .map(|term| (term.col, values()[term.coefficient as usize]))
                .collect();
            prop_assert_eq!(back, expected);
            for item in items {
                prop_assert_eq!(Item::decode(item.encode()), Some(item));
            }
        }
    }

    #[test]
    fn a_packing_is_one_item() {
        for gap in [1, 2] {
            let terms: Vec<_> = (0..8)
                .map(|k| Term {
                    col: 100 - k * gap,
                    coefficient: k,
                })
                .collect();
            let items = items(&terms, &values());
            let run = Run {
                first: terms[0],
                length: 8,
                gap,
                step: Step::Double,
            };
            assert_eq!(items, [Item::Run(run)]);
        }
    }

    #[test]
    fn refuses_what_is_no_item() {
        let run = |col, step: u32, length: u32| {
            Item::decode([col, RUN_BIT | step << STEP_SHIFT | length << LENGTH_SHIFT])
        };
        assert!(run(8, 1, 8).is_some());
        assert_eq!(run(7, 1, 8), None);
        assert_eq!(run(8, 3, 8), None);
        assert!(run(15, 5, 8).is_some());
        assert_eq!(run(14, 5, 8), None);
        assert_eq!(run(8, 1, 1), None);
        assert_eq!(run(300, 1, 255), None);
        assert_eq!(run(INPUT_BIT | 8, 1, 8), None);
    }
}
