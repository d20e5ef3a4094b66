//! The constraint system that folds the rows of a circuit as they come.

use super::{
    coefficients::Dictionary,
    dimensions::Dimensions,
    folded::Folded,
    folder::Folder,
    interner::Interner,
    known_shape::{Known, advance},
    rows::{INPUT_BIT, PROVEN, Shape},
    tables::Tables,
    types::{Link, Rule},
};
use crate::{
    csr::{CsrError, Row},
    density::Density,
    fingerprint::{CircuitHasher, Fingerprint},
    r1cs::R1cs,
    record::RecordError,
};
use bellperson::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use cuzk_memory::unwind::{CAN_UNWIND, unwind_with};
use cuzk_memory::{Checkpoint, NEVER_STOP};
use ff::PrimeField;
use std::collections::HashMap;
use std::thread;

/// Folds the rows of a circuit, even if that is larger than plain rows. Unwinds with
/// [`Stopped`](cuzk_memory::Stopped) if `checkpoint` is cancelled.
pub(super) fn fold_while<S: PrimeField, C: Circuit<S>>(
    circuit: C,
    checkpoint: &Checkpoint<'_>,
) -> Result<(Fingerprint, Folded<S>), RecordError> {
    let mut cs = Compiler::create(checkpoint)?;
    cs.alloc_input(|| "ONE", || Ok(S::ONE))?;
    circuit.synthesize(&mut cs)?;
    Ok(cs.finish()?)
}

/// The auxiliary variables that plain rows prove to be 0 or 1: what compiling
/// them finds, up to the first row that cannot be compiled.
///
/// Plain rows do not say how many variables were allocated before them. The
/// greatest that has been named so far is as good: only distances count.
pub(super) fn boolean_columns<S: PrimeField>(r1cs: &R1cs<S>) -> Density {
    let mut columns = Density::new(r1cs.num_aux());
    let Ok(mut cs) = Compiler::create(&NEVER_STOP) else {
        return columns;
    };
    cs.num_inputs = u32::try_from(r1cs.num_inputs()).unwrap_or(0);
    let [a, b, c] = [r1cs.a(), r1cs.b(), r1cs.c()].map(|matrix| matrix.rows_from(0));
    for ((a, b), c) in a.zip(b).zip(c) {
        let row = [a, b, c].map(|row| cs.combination(&row));
        if cs.push_row(row.each_ref()).is_err() {
            break;
        }
    }
    for index in 0..cs.num_aux {
        if bit(&cs.boolean, index) {
            columns.insert(index as usize);
        }
    }
    columns
}

/// A boolean variable that a row fixes.
#[derive(Debug, Clone, Copy)]
struct Fixed {
    col: u32,
    cursor: u32,
    shape: u32,
}

/// How many recently fixed variables are remembered, by column.
const FIXED_LEN: usize = 64;

/// How many rows are compiled between two questions whether to go on.
const STRETCH_ROWS: u32 = 4096;

/// The constraint system that [`compile`](super::compile::compile) hands to a circuit.
pub(crate) struct Compiler<'a, S> {
    checkpoint: &'a Checkpoint<'a>,
    num_inputs: u32,
    num_aux: u32,
    rows: u32,
    nnz: [u64; 3],
    cursor_before: u32,
    coefficients: Dictionary<S>,
    parts: Interner,
    shapes: Interner,
    known: Vec<Known>,
    folder: Folder,
    hasher: CircuitHasher,
    /// Bit i of word i / 64: auxiliary i is known to be boolean.
    boolean: Vec<u64>,
    fixed: [Option<Fixed>; FIXED_LEN],
    /// True if a shape is boolean, given that an earlier shape fixes one of its variables.
    /// The key is (shape, earlier shape, distance of their cursors).
    linked: HashMap<(u32, u32, u32), bool>,
    scratch: Vec<u32>,
    /// `enforce` cannot fail, so the first failure waits here for the end.
    failed: Option<CsrError>,
}

impl<'a, S: PrimeField> Compiler<'a, S> {
    pub(super) fn create(checkpoint: &'a Checkpoint<'a>) -> Result<Self, CsrError> {
        Ok(Compiler {
            checkpoint,
            num_inputs: 0,
            num_aux: 0,
            rows: 0,
            nnz: [0; 3],
            cursor_before: 0,
            coefficients: Dictionary::new()?,
            parts: Interner::default(),
            shapes: Interner::default(),
            known: Vec::new(),
            folder: Folder::default(),
            hasher: CircuitHasher::new(),
            boolean: Vec::new(),
            fixed: [None; FIXED_LEN],
            linked: HashMap::new(),
            scratch: Vec::new(),
            failed: None,
        })
    }

    pub(super) fn finish(self) -> Result<(Fingerprint, Folded<S>), CsrError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let known = self.known;
        let folded = self.folder.finish(&|terminal| advance(&known, terminal))?;
        let fingerprint = self.hasher.finish(
            self.num_inputs as usize,
            self.num_aux as usize,
            self.rows as usize,
        );
        let shapes = self.shapes.iter().zip(&known).map(|(words, known)| Shape {
            advance: known.advance,
            parts: [words[1], words[2], words[3]],
            boolean: match known.rule {
                Rule::Nothing => 0,
                Rule::Alone { z } | Rule::Given { z, .. } => z,
            },
        });
        let coefficients = self.coefficients.into_values();
        let tables = Tables::assemble(&self.parts, &coefficients, shapes, &folded)?;
        let dimensions = Dimensions {
            num_inputs: self.num_inputs,
            num_aux: self.num_aux,
            rows: self.rows,
            nnz: self.nnz,
        };
        Ok((fingerprint, Folded::new(dimensions, coefficients, tables)))
    }

    /// A plain row's share, whose variables become allocated.
    fn combination(&mut self, row: &Row<'_, S>) -> LinearCombination<S> {
        let mut sum = LinearCombination::zero();
        for (&col, &value) in row.cols.iter().zip(row.values) {
            let index = match col.checked_sub(self.num_inputs) {
                None => Index::Input(col as usize),
                Some(aux) => {
                    self.num_aux = self.num_aux.max(aux + 1);
                    Index::Aux(aux as usize)
                }
            };
            sum = sum + (value, Variable::new_unchecked(index));
        }
        sum
    }

    fn push_row(&mut self, row: [&LinearCombination<S>; 3]) -> Result<(), CsrError> {
        let mut words = [self.num_aux - self.cursor_before, 0, 0, 0];
        for (word, lc) in words[1..].iter_mut().zip(row) {
            *word = self.part(lc)?;
        }
        self.cursor_before = self.num_aux;
        let (shape, new) = self.shapes.intern(&words)?;
        if new {
            let known = Known::new(words, &self.parts, self.coefficients.values());
            self.known.push(known);
        }
        let terminal = shape << 1 | if self.proves(shape) { PROVEN } else { 0 };
        let known = &self.known;
        self.folder
            .push(terminal, &|terminal| advance(known, terminal))?;
        let known = &self.known[shape as usize];
        let base = match known.newest {
            0 => 0,
            newest => self.num_aux - newest,
        };
        self.hasher.push(&known.digest, base.into());
        for (sum, nnz) in self.nnz.iter_mut().zip(known.nnz) {
            *sum += nnz;
        }
        self.rows = self.rows.checked_add(1).ok_or(too_many("rows"))?;
        Ok(())
    }

    /// The name of one matrix's share of a row.
    fn part(&mut self, lc: &LinearCombination<S>) -> Result<u32, CsrError> {
        self.scratch.clear();
        for (&index, value) in lc.iter_inputs() {
            let index = within(index, self.num_inputs)?;
            self.push_term(INPUT_BIT | index, value)?;
        }
        for (&index, value) in lc.iter_aux() {
            let back = self.num_aux - within(index, self.num_aux)?;
            self.push_term(back, value)?;
        }
        Ok(self.parts.intern(&self.scratch)?.0)
    }

    fn push_term(&mut self, col: u32, value: &S) -> Result<(), CsrError> {
        if !value.is_zero_vartime() {
            let name = self.coefficients.name(value)?;
            self.scratch.extend([col, name]);
        }
        Ok(())
    }

    /// Returns true if this row proves its shape's column boolean, and records that.
    fn proves(&mut self, shape: u32) -> bool {
        let z = match &self.known[shape as usize].rule {
            Rule::Nothing => return false,
            Rule::Alone { z } => *z,
            Rule::Given {
                z,
                others,
                only_if_linked,
            } => {
                let cursor = self.num_aux;
                let is_boolean = |&back: &u32| bit(&self.boolean, cursor - back);
                let z = *z;
                if !others.iter().all(is_boolean) || *only_if_linked && !self.is_linked(shape) {
                    return false;
                }
                let col = cursor - z;
                self.fixed[col as usize % FIXED_LEN] = Some(Fixed { col, cursor, shape });
                z
            }
        };
        set_bit(&mut self.boolean, self.num_aux - z);
        true
    }

    /// Returns true if an earlier row fixes a variable of this one so that the column in
    /// question is boolean.
    fn is_linked(&mut self, shape: u32) -> bool {
        let cursor = self.num_aux;
        let known = &self.known[shape as usize];
        let (Rule::Given { z, others, .. }, Some(row)) = (&known.rule, &known.row) else {
            return false;
        };
        others.iter().any(|&back| {
            let col = cursor - back;
            let Some(fixed) = self.fixed[col as usize % FIXED_LEN].filter(|f| f.col == col) else {
                return false;
            };
            let earlier = &self.known[fixed.shape as usize];
            let distance = cursor - fixed.cursor;
            let verdict = self.linked.entry((shape, fixed.shape, distance));
            *verdict.or_insert_with(|| {
                let link = earlier.row.as_ref().map(|row| Link {
                    row,
                    z: fixed.cursor - fixed.col,
                    distance,
                });
                let values = self.coefficients.values();
                link.is_some() && row.always_boolean(*z, others, link.as_ref(), values)
            })
        })
    }
}

fn bit(words: &[u64], index: u32) -> bool {
    let word = words.get(index as usize / 64).copied().unwrap_or(0);
    word >> (index % 64) & 1 == 1
}

fn set_bit(words: &mut Vec<u64>, index: u32) {
    let at = index as usize / 64;
    if at >= words.len() {
        words.resize(at + 1, 0);
    }
    words[at] |= 1 << (index % 64);
}

/// `index` as a name of one of `count` variables.
fn within(index: usize, count: u32) -> Result<u32, CsrError> {
    match u32::try_from(index) {
        Ok(small) if small < count => Ok(small),
        _ => Err(CsrError::NotAllocated {
            index,
            allocated: count as usize,
        }),
    }
}

fn too_many(what: &'static str) -> CsrError {
    CsrError::TooLarge {
        what,
        got: VARIABLES_MAX as usize + 1,
        limit: VARIABLES_MAX as usize,
    }
}

/// Columns leave a bit for [`INPUT_BIT`].
const VARIABLES_MAX: u32 = INPUT_BIT - 1;

impl<S: PrimeField> ConstraintSystem<S> for Compiler<'_, S> {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        let index = self.num_aux;
        if index == VARIABLES_MAX {
            self.failed.get_or_insert(too_many("auxiliary variables"));
        } else {
            self.num_aux += 1;
        }
        Ok(Variable::new_unchecked(Index::Aux(index as usize)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        let index = self.num_inputs;
        if index == VARIABLES_MAX {
            self.failed.get_or_insert(too_many("inputs"));
        } else {
            self.num_inputs += 1;
        }
        Ok(Variable::new_unchecked(Index::Input(index as usize)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
        LB: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
        LC: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
    {
        if self.failed.is_some() {
            return;
        }
        // Some gadgets add rows when they are dropped, also by a stop that unwinds already. A
        // second one would end the process.
        let asks = CAN_UNWIND && self.rows.is_multiple_of(STRETCH_ROWS) && !thread::panicking();
        if asks && let Err(stopped) = self.checkpoint.check() {
            unwind_with(stopped);
        }
        let a = a(LinearCombination::zero());
        let b = b(LinearCombination::zero());
        let c = c(LinearCombination::zero());
        if let Err(error) = self.push_row([&a, &b, &c]) {
            self.failed = Some(error);
        }
    }

    crate::nameless::nameless!();
}
