//! The name of a row: the namespaces that it is in, and its own annotation.
//!
//! Rows have no names once they are compiled: those of a circuit of 32 GiB would be
//! gigabytes. So the circuit is synthesised up to the row, and makes the names on the way. The
//! invariant: rows are counted as [`crate::compile()`] counts them.

use bellperson::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use cuzk_memory::{Checkpoint, NEVER_STOP, Stopped};
use ff::PrimeField;

use crate::record::RecordError;

/// The number of rows from one look at the checkpoint to the next. They take a few milliseconds.
const LOOK_ROWS: usize = 1 << 12;

/// Returns the name of a row of a blank circuit: its namespaces from the outermost, and its
/// annotation, with slashes between them. None if the circuit has no such row. It takes less
/// time than compiling the rows before it, since their terms are not made.
///
/// # Errors
/// That of the circuit, if it fails before the row.
pub fn row_name<S: PrimeField, C: Circuit<S>>(
    circuit: C,
    row: usize,
) -> Result<Option<String>, RecordError> {
    row_name_while(circuit, row, &NEVER_STOP)
}

/// Returns the name of a row, as [`row_name`]. It passes `checkpoint` before every few thousand
/// rows.
///
/// # Errors
/// As [`row_name`], and [`RecordError::Stopped`].
pub fn row_name_while<S: PrimeField, C: Circuit<S>>(
    circuit: C,
    row: usize,
    checkpoint: &Checkpoint<'_>,
) -> Result<Option<String>, RecordError> {
    let mut names = RowNames {
        checkpoint,
        next_look: 0,
        stopped: None,
        wanted: row,
        rows: 0,
        namespaces: Vec::new(),
        found: None,
        num_inputs: 0,
        num_aux: 0,
    };
    let one = ConstraintSystem::<S>::alloc_input(&mut names, || "ONE", || Ok(S::ONE));
    let synthesized = one.and_then(|_| circuit.synthesize(&mut names));
    match (names.found, names.stopped) {
        // The circuit was ended at the next variable.
        (Some(name), _) => Ok(Some(name)),
        (None, Some(stopped)) => Err(stopped.into()),
        (None, None) => Ok(synthesized.map(|()| None)?),
    }
}

/// A constraint system that keeps the namespaces it is in, and no row.
struct RowNames<'a> {
    checkpoint: &'a Checkpoint<'a>,
    /// The row before which the checkpoint is passed again.
    next_look: usize,
    stopped: Option<Stopped>,
    wanted: usize,
    rows: usize,
    namespaces: Vec<String>,
    found: Option<String>,
    num_inputs: usize,
    num_aux: usize,
}

impl RowNames<'_> {
    /// Returns an error once the row was found or the checkpoint said stop, so that the circuit
    /// need not be synthesised to its end.
    fn goes_on(&mut self) -> Result<(), SynthesisError> {
        if self.found.is_none() && self.stopped.is_none() && self.rows >= self.next_look {
            self.next_look = self.rows + LOOK_ROWS;
            self.stopped = self.checkpoint.check().err();
        }
        match (&self.found, self.stopped) {
            (None, None) => Ok(()),
            _ => Err(SynthesisError::Unsatisfiable),
        }
    }
}

impl<S: PrimeField> ConstraintSystem<S> for RowNames<'_> {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.goes_on()?;
        self.num_aux += 1;
        Ok(Variable::new_unchecked(Index::Aux(self.num_aux - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.goes_on()?;
        self.num_inputs += 1;
        Ok(Variable::new_unchecked(Index::Input(self.num_inputs - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, annotation: A, _: LA, _: LB, _: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
        LB: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
        LC: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
    {
        if self.rows == self.wanted && self.found.is_none() {
            let own = annotation().into();
            let names = self.namespaces.iter().chain([&own]);
            let names: Vec<_> = names.map(String::as_str).collect();
            self.found = Some(names.join("/"));
        }
        self.rows += 1;
    }

    fn push_namespace<NR, N>(&mut self, name: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
        // Nothing is asked of names once the row was found.
        let name = match self.found {
            Some(_) => String::new(),
            None => name().into(),
        };
        self.namespaces.push(name);
    }

    fn pop_namespace(&mut self) {
        self.namespaces.pop();
    }

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use blstrs::Scalar;
    use cuzk_memory::Cancellation;
    use ff::Field;

    use super::*;

    /// Two rows in a namespace of a namespace, and one outside; variables after each.
    struct Named {
        fails_after: usize,
    }

    impl Circuit<Scalar> for Named {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            {
                let mut outer = cs.namespace(|| "challenge 3");
                let mut inner = outer.namespace(|| "layer 1");
                for row in 0..2 {
                    inner.enforce(|| format!("row {row}"), |lc| lc, |lc| lc, |lc| lc);
                    inner.alloc(|| "after", || Ok(Scalar::ZERO))?;
                }
            }
            if self.fails_after == 2 {
                return Err(SynthesisError::AssignmentMissing);
            }
            cs.enforce(|| "last", |lc| lc, |lc| lc, |lc| lc);
            cs.alloc_input(|| "input", || Ok(Scalar::ZERO))?;
            Ok(())
        }
    }

    fn named(row: usize, fails_after: usize) -> Result<Option<String>, RecordError> {
        row_name::<Scalar, _>(Named { fails_after }, row)
    }

    #[test]
    fn a_row_is_named_with_its_namespaces() {
        let names = [
            "challenge 3/layer 1/row 0",
            "challenge 3/layer 1/row 1",
            "last",
        ];
        for (row, name) in names.into_iter().enumerate() {
            assert_eq!(named(row, 3).unwrap().as_deref(), Some(name));
        }
        assert_eq!(named(3, 3).unwrap(), None, "there is no such row");
    }

    #[test]
    fn a_circuit_that_fails_later_has_names_before() {
        assert_eq!(
            named(1, 2).unwrap().as_deref(),
            Some("challenge 3/layer 1/row 1")
        );
        let failed = named(2, 2).unwrap_err();
        assert!(matches!(failed, RecordError::Synthesis(_)), "{failed}");
    }

    /// Rows with a variable after each, as many as are asked for; it counts those that it made.
    struct Many<'a> {
        rows: usize,
        made: &'a AtomicUsize,
        cancel_after: usize,
        cancellation: &'a Cancellation,
    }

    impl Circuit<Scalar> for Many<'_> {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            for row in 0..self.rows {
                if row == self.cancel_after {
                    self.cancellation.cancel();
                }
                cs.enforce(|| format!("row {row}"), |lc| lc, |lc| lc, |lc| lc);
                cs.alloc(|| "after", || Ok(Scalar::ZERO))?;
                self.made.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        }
    }

    #[test]
    fn naming_stops_within_some_rows_of_a_cancellation() {
        let (made, cancellation) = (AtomicUsize::new(0), Cancellation::default());
        let many = || Many {
            rows: 8 * LOOK_ROWS,
            made: &made,
            cancel_after: 2 * LOOK_ROWS + 1,
            cancellation: &cancellation,
        };
        let name = |row| row_name_while::<Scalar, _>(many(), row, &Checkpoint::new(&cancellation));
        // It was found before.
        let first = name(LOOK_ROWS).unwrap();
        assert_eq!(first, Some(format!("row {LOOK_ROWS}")));
        made.store(0, Ordering::Relaxed);
        let stops = |row| assert!(matches!(name(row), Err(RecordError::Stopped)));
        stops(7 * LOOK_ROWS);
        let made_until = made.swap(0, Ordering::Relaxed);
        let expected = 2 * LOOK_ROWS..4 * LOOK_ROWS;
        assert!(expected.contains(&made_until), "{made_until}");
        stops(7 * LOOK_ROWS);
        assert_eq!(made.into_inner(), 0, "it was cancelled before");
    }
}
