//! Properties of whole programs, on random circuits.

use super::*;
use crate::{
    Columns, Witness, evaluate, naive, record,
    testing::*,
    witness::{PackedBuilder, witness},
};
use bellperson::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::Scalar;
use cuzk_memory::{Checkpoint, NEVER_STOP, Pause, Stopped};
use ff::Field;
use proptest::prelude::*;
use std::{
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    time::Instant,
};

/// a and b of a program, over buffers full of garbage.
fn run<W: Columns<Scalar>>(program: &Program<Scalar>, w: &W) -> [Vec<Scalar>; 3] {
    let garbage = || vec![Scalar::from(77); program.rows() + program.num_inputs()];
    let [mut a, mut b, mut c] = [(); 3].map(|()| garbage());
    let (mut a2, mut b2) = (garbage(), garbage());
    program
        .evaluate_into(w, &mut a2, &mut b2, &NEVER_STOP)
        .unwrap();
    let abc = [&mut a[..], &mut b[..], &mut c[..]];
    program.evaluate_abc_into(w, abc, &NEVER_STOP).unwrap();
    assert!(a == a2 && b == b2);
    [a, b, c]
}

/// The circuit folded and, if it is small, plain: small ones would never be
/// folded otherwise.
fn programs(circuit: &RandomCircuit) -> [Program<Scalar>; 2] {
    let folded = compile::compile_folded(circuit.blank()).unwrap();
    assert!(folded.plain().is_none());
    [folded, compile(circuit.blank()).unwrap()]
}

/// Squares, one after the other: as many rows as asked for.
struct Squares(usize);

impl Circuit<Scalar> for Squares {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut last = cs.alloc(|| "first", || Ok(Scalar::ONE))?;
        for _ in 0..self.0 {
            let next = cs.alloc(|| "next", || Ok(Scalar::ONE))?;
            cs.enforce(|| "square", |lc| lc + last, |lc| lc + last, |lc| lc + next);
            last = next;
        }
        Ok(())
    }
}

/// Unfolding asks every few thousand rows, and ends at once when it is told to. It does not
/// pause for urgent work, which may wait for the rows.
#[test]
fn unfolding_stops_and_never_pauses() {
    let rows = 3 * ROWS_A_LOOK;
    let program = compile(Squares(rows)).unwrap();
    let pause = Arc::new(Pause::default());
    let _urgent = pause.raise();
    for (looks, stops) in [(0, true), (2, true), (3, false)] {
        let asked = AtomicI32::new(0);
        let checkpoint = Checkpoint::asking(|| asked.fetch_add(1, Ordering::Relaxed) >= looks);
        let unfolded = program.to_r1cs_unless_stopped(&checkpoint.paused_by(&pause));
        if stops {
            assert_eq!(unfolded, Err(UnfoldError::Stopped(Stopped)));
            assert_eq!(asked.load(Ordering::Relaxed), looks + 1);
        } else {
            assert_eq!(unfolded.unwrap(), program.to_r1cs().unwrap());
        }
    }
}

proptest! {
    #[test]
    fn a_program_is_the_recorded_system(circuit in random_circuit(), at in 0..2usize) {
        let r1cs = record(circuit.blank()).unwrap();
        let [program, other] = programs(&circuit);
        prop_assert_eq!(program.boolean_columns(), other.boolean_columns());
        let program = if at == 0 { program } else { other };
        prop_assert_eq!(program.fingerprint(), r1cs.fingerprint());
        prop_assert_eq!(program.recompute_fingerprint(), r1cs.fingerprint());
        prop_assert_eq!(program.densities(), r1cs.densities());
        let nnz = [r1cs.a(), r1cs.b(), r1cs.c()].map(|m| m.nnz() as u64);
        prop_assert_eq!(program.nnz(), nnz);
        prop_assert_eq!(program.to_r1cs().unwrap(), r1cs);
    }

    #[test]
    fn evaluation_is_the_oracles(circuit in random_circuit(), at in 0..2usize) {
        let r1cs = record(circuit.blank()).unwrap();
        let program = &programs(&circuit)[at];
        let plain = witness(circuit).unwrap();
        let oracle = evaluate(&r1cs, &plain, None).unwrap();
        let c = naive::spmv(r1cs.c(), plain.values()).unwrap();
        let packed = PackedBuilder::pack(&plain);
        for [a2, b2, c2] in [run(program, &plain), run(program, &packed)] {
            prop_assert_eq!(&a2, &oracle.a);
            prop_assert_eq!(&b2, &oracle.b);
            prop_assert_eq!(&c2[..c.len()], &c[..]);
            prop_assert!(c2[c.len()..].iter().all(|c| c.is_zero_vartime()));
        }
        let first_bad = naive::check(&r1cs, &plain).unwrap();
        prop_assert_eq!(check(program, &plain).unwrap(), first_bad);
        prop_assert_eq!(check(program, &packed).unwrap(), first_bad);
    }

    /// Evaluation is exact for any values, also where bits were expected.
    #[test]
    fn evaluation_does_not_trust_the_witness(
        circuit in random_circuit(),
        at in 0..2usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..5u64), 0..20),
    ) {
        let r1cs = record(circuit.blank()).unwrap();
        let program = &programs(&circuit)[at];
        let (mut values, num_inputs) = witness(circuit).unwrap().into_parts();
        for (at, value) in changes {
            let at = at.index(values.len());
            if at > 0 {
                values[at] = Scalar::from(value);
            }
        }
        let plain = Witness::new(values, num_inputs).unwrap();
        let oracle = evaluate(&r1cs, &plain, None).unwrap();
        let c = naive::spmv(r1cs.c(), plain.values()).unwrap();
        let packed = PackedBuilder::pack(&plain);
        for [a, b, c2] in [run(program, &plain), run(program, &packed)] {
            prop_assert_eq!(&a, &oracle.a);
            prop_assert_eq!(&b, &oracle.b);
            prop_assert_eq!(&c2[..c.len()], &c[..]);
        }
        let first_bad = naive::check(&r1cs, &plain).unwrap();
        prop_assert_eq!(check(program, &plain).unwrap(), first_bad);
        prop_assert_eq!(check(program, &packed).unwrap(), first_bad);
    }

    /// The evaluation of a satisfied witness is exact on every row that holds, whatever the
    /// others do.
    #[test]
    fn of_a_satisfied_row_the_short_way_is_exact(circuit in random_circuit(), at in 0..2usize) {
        let program = &programs(&circuit)[at];
        let plain = witness(circuit).unwrap();
        prop_assert_eq!(
            copied_rows(program, &plain),
            copied_rows(program, &PackedBuilder::pack(&plain))
        );
    }

    /// Where rows say that a long sum is a variable, the variable is read. Rows that do not
    /// hold show it.
    #[test]
    fn a_long_sum_is_read_from_its_variable(
        terms in prop::collection::vec((any::<u64>(), any::<u64>()), 0..9),
        errors in prop::collection::vec(0..3u64, 1..40),
    ) {
        let wrong = errors.iter().filter(|&&error| error > 0).count();
        let is_long = terms.len() > 3;
        let sums = Sums { terms, errors };
        let program = compile::compile_folded(sums.clone()).unwrap();
        let plain = witness(sums).unwrap();
        for copied in [copied_rows(&program, &plain), copied_rows(&program, &PackedBuilder::pack(&plain))] {
            prop_assert!(copied == wrong || !is_long && copied < wrong);
        }
    }

    /// Whatever the circuit, its program is not larger than plain rows are.
    #[test]
    fn no_program_is_larger_than_plain_rows(
        circuit in prop_oneof![random_circuit(), unrepetitive_circuit()],
    ) {
        let directory = tempfile::tempdir().unwrap();
        let r1cs = record(circuit.blank()).unwrap();
        let program = compile(circuit.blank()).unwrap();
        prop_assert!(program.resident_bytes() <= r1cs.resident_bytes());
        let [plain, ours] = ["plain", "ours"].map(|name| directory.path().join(name));
        crate::disk::write(&plain, &r1cs, "label").unwrap();
        write(&ours, &program, "label").unwrap();
        let bytes = |path| std::fs::metadata(path).unwrap().len();
        prop_assert!(bytes(&ours) <= bytes(&plain));
        let (header, again) = read::<Scalar>(&ours, Some(r1cs.fingerprint())).unwrap();
        prop_assert_eq!(inspect::<Scalar>(&ours).unwrap(), header);
        prop_assert_eq!(again.plain(), program.plain());
        prop_assert_eq!(again.boolean_columns(), program.boolean_columns());
        prop_assert_eq!(again.to_r1cs().unwrap(), r1cs);
    }

    /// A column that is called boolean is 0 or 1 in every witness that satisfies the rows.
    /// With any other value there, a witness does not satisfy the rows, or the column is
    /// not called boolean.
    #[test]
    fn boolean_columns_are_boolean(circuit in random_circuit()) {
        let program = compile(circuit.blank()).unwrap();
        let witness = witness(circuit).unwrap();
        if check(&program, &witness).unwrap().is_none() {
            for column in program.boolean_columns().iter() {
                let value = witness.aux()[column];
                prop_assert!(value == Scalar::ZERO || value == Scalar::ONE);
            }
        }
    }
}

/// Rows that say that a sum of the same variables is another one, the sum in A
/// and in B by turns. Each is off by an error.
#[derive(Debug, Clone)]
struct Sums {
    /// Values and coefficients.
    terms: Vec<(u64, u64)>,
    errors: Vec<u64>,
}

impl Circuit<Scalar> for Sums {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        // Too large to be summed as integers.
        let coefficient = |factor: u64| Scalar::from(factor).square() + Scalar::from(1 << 60);
        let mut variables = Vec::new();
        let mut exact = Scalar::ZERO;
        for (at, &(value, factor)) in self.terms.iter().enumerate() {
            let value = Scalar::from(value);
            exact += value * coefficient(factor);
            let variable = cs.alloc(|| format!("x{at}"), || Ok(value))?;
            variables.push((coefficient(factor), variable));
        }
        for (at, &error) in self.errors.iter().enumerate() {
            let value = exact + Scalar::from(error);
            let y = cs.alloc(|| format!("y{at}"), || Ok(value))?;
            let sum = |lc| variables.iter().fold(lc, |lc, &term| lc + term);
            let row = || format!("row {at}");
            if at % 2 == 0 {
                cs.enforce(row, sum, |lc| lc + CS::one(), |lc| lc + y);
            } else {
                cs.enforce(row, |lc| lc + CS::one(), sum, |lc| lc + y);
            }
        }
        Ok(())
    }
}

/// Returns the rows where the short way's a and b are not exact. These rows do not hold:
/// one of a and b is the value of C there, and the other is ONE.
fn copied_rows<W: Columns<Scalar>>(program: &Program<Scalar>, w: &W) -> usize {
    let [a, b, c] = run(program, w);
    let (mut a2, mut b2) = (vec![-Scalar::ONE; a.len()], vec![-Scalar::ONE; b.len()]);
    program
        .evaluate_satisfied(w, [&mut a2, &mut b2], &NEVER_STOP)
        .unwrap();
    let mut copied = 0;
    for row in 0..a.len() {
        if (a[row], b[row]) != (a2[row], b2[row]) {
            assert!(row < program.rows() && a[row] * b[row] != c[row]);
            let (sum, one) = if b[row] == b2[row] {
                (a2[row], b2[row])
            } else {
                (b2[row], a2[row])
            };
            assert_eq!((sum, one), (c[row], Scalar::ONE));
            copied += 1;
        }
    }
    copied
}

#[test]
fn gadgets_of_bits_are_recognised() {
    let (circuit, bits) = RandomCircuit::gadgets();
    let program = compile(circuit.blank()).unwrap();
    let columns = program.boolean_columns();
    assert_eq!(columns.iter().collect::<Vec<_>>(), bits);
}

#[test]
fn a_throttle_that_never_falls_slows_but_does_not_hang() {
    let circuit = RandomCircuit::squares(100);
    let program = compile(circuit.blank()).unwrap();
    let w = witness(circuit).unwrap();
    let raised = AtomicI32::new(1);
    let len = program.rows() + program.num_inputs();
    let (mut a, mut b) = (vec![Scalar::ZERO; len], vec![Scalar::ZERO; len]);
    let throttled = NEVER_STOP.throttled(Some(&raised), program.rows());
    program
        .evaluate_into(&w, &mut a, &mut b, &throttled)
        .unwrap();
    let [a2, b2, _] = run(&program, &w);
    assert!(a == a2 && b == b2);
}

/// A witness that raises a throttle when it is first read.
struct Raising<'a>(&'a Witness<Scalar>, &'a AtomicI32);

impl Columns<Scalar> for Raising<'_> {
    fn num_inputs(&self) -> usize {
        self.0.num_inputs()
    }

    fn num_aux(&self) -> usize {
        Columns::num_aux(self.0)
    }

    fn input(&self, index: usize) -> Scalar {
        Columns::input(self.0, index)
    }

    fn aux(&self, index: usize) -> Scalar {
        self.1.store(1, Ordering::Release);
        Columns::aux(self.0, index)
    }

    fn bits(&self, start: usize, count: usize) -> Option<u64> {
        self.1.store(1, Ordering::Release);
        Columns::bits(self.0, start, count)
    }
}

#[test]
fn every_block_looks_at_the_throttle() {
    let circuit = RandomCircuit::squares(crate::CHUNK_ROWS + 1);
    let program = compile(circuit.blank()).unwrap();
    let w = witness(circuit).unwrap();
    let len = program.rows() + program.num_inputs();
    let (mut a, mut b) = (vec![Scalar::ZERO; len], vec![Scalar::ZERO; len]);
    // The first block raises it, on the only thread, so the second finds it up.
    let throttle = AtomicI32::new(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    let start = Instant::now();
    pool.build().unwrap().install(|| {
        let raising = Raising(&w, &throttle);
        let throttled = NEVER_STOP.throttled(Some(&throttle), program.rows());
        program
            .evaluate_into(&raising, &mut a, &mut b, &throttled)
            .unwrap();
    });
    assert!(start.elapsed() >= cuzk_memory::wait_max(program.rows()));
    let [a2, b2, _] = run(&program, &w);
    assert!(a == a2 && b == b2);
}

#[test]
fn evaluation_stops_at_the_next_block() {
    let circuit = RandomCircuit::squares(8 * crate::CHUNK_ROWS);
    let program = compile(circuit.blank()).unwrap();
    let w = witness(circuit).unwrap();
    let len = program.rows() + program.num_inputs();
    let (mut a, mut b) = (vec![Scalar::ZERO; len], vec![Scalar::ZERO; len]);
    let asked = AtomicI32::new(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    pool.build().unwrap().install(|| {
        let fourth = Checkpoint::asking(|| asked.fetch_add(1, Ordering::Relaxed) >= 3);
        let mut run = |checkpoint| program.evaluate_satisfied(&w, [&mut a, &mut b], checkpoint);
        assert_eq!(run(&fourth), Err(crate::EvalError::Stopped));
        assert_eq!(asked.load(Ordering::Relaxed), 4, "nobody asks again");
        assert_eq!(run(&NEVER_STOP), Ok(()));
    });
    let [a2, b2, _] = self::run(&program, &w);
    assert!(a == a2 && b == b2);
}

#[test]
fn other_dimensions_are_an_error() {
    use crate::EvalError::*;
    let program = compile(RandomCircuit::squares(10).blank()).unwrap();
    let w = witness(RandomCircuit::squares(10)).unwrap();
    let other = witness(RandomCircuit::squares(11)).unwrap();
    let len = program.rows() + program.num_inputs();
    let (mut a, mut b) = (vec![Scalar::ZERO; len], vec![Scalar::ZERO; len]);
    let mut run = |w, b: &mut [Scalar]| program.evaluate_into(w, &mut a, b, &NEVER_STOP);
    assert!(matches!(run(&other, &mut b), Err(WitnessLength { .. })));
    assert!(matches!(
        run(&w, &mut b[1..]),
        Err(BufferLength { name: "b", .. })
    ));
    assert!(matches!(check(&program, &other), Err(WitnessLength { .. })));
    let moved = Witness::new(w.values().to_vec(), 3).unwrap();
    assert!(matches!(run(&moved, &mut b), Err(InputCount { .. })));
}

/// Adds its last row when it is dropped, as gadgets do that pack several equations into a row.
struct Late<'a, CS: ConstraintSystem<Scalar>>(&'a mut CS);

impl<CS: ConstraintSystem<Scalar>> Drop for Late<'_, CS> {
    fn drop(&mut self) {
        self.0.enforce(|| "late", |lc| lc, |lc| lc, |lc| lc);
    }
}

#[test]
fn a_stop_passes_gadgets_that_add_rows_when_they_are_dropped() {
    struct Rows;
    impl Circuit<Scalar> for Rows {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            let late = Late(cs);
            late.0.enforce(|| "first", |lc| lc, |lc| lc, |lc| lc);
            Ok(())
        }
    }
    let stopped = compile_while(Rows, &Checkpoint::asking(|| true));
    assert!(matches!(stopped, Err(crate::RecordError::Stopped)));
    let rows = compile_while(Rows, &NEVER_STOP).unwrap().rows();
    assert_eq!(rows, 2);
}

/// The checkpoint is asked every few thousand rows. Once it has stopped the work, neither
/// it nor the circuit is asked for more, although this circuit cannot fail.
#[test]
fn compiling_stops_when_it_is_to_go_on_no_more() {
    const ROWS: usize = 100_000;
    struct Rows<'a>(&'a AtomicI32);
    impl Circuit<Scalar> for Rows<'_> {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            for _ in 0..ROWS {
                self.0.fetch_add(1, Ordering::Relaxed);
                let bit = cs.alloc(|| "bit", || Ok(Scalar::ONE)).unwrap();
                let one = CS::one();
                cs.enforce(|| "bit", |lc| lc + bit, |lc| lc + one - bit, |lc| lc);
            }
            Ok(())
        }
    }
    let compiled = |limit| {
        let (rows, asked) = (AtomicI32::new(0), AtomicI32::new(0));
        let last = || asked.fetch_add(1, Ordering::Relaxed) + 1 >= limit;
        let program = compile_while(Rows(&rows), &Checkpoint::asking(last));
        let rows = program.map(|program| program.rows()).map_err(|error| {
            assert!(matches!(error, crate::RecordError::Stopped), "{error}");
            usize::try_from(rows.load(Ordering::Relaxed)).unwrap()
        });
        (rows, asked.load(Ordering::Relaxed))
    };
    let (rows, asked) = compiled(i32::MAX);
    assert_eq!(rows, Ok(ROWS));
    assert!(asked > 10, "{asked}");
    assert_eq!(compiled(1), (Err(1), 1));
    let (rows, asked) = compiled(3);
    assert_eq!(asked, 3);
    assert!((1..ROWS / 5).contains(&rows.unwrap_err()));
}

/// The rows of many chunks, so that blocks start in the middle of things.
#[test]
fn long_circuits_evaluate_in_blocks() {
    let circuit = RandomCircuit::long();
    let r1cs = record(circuit.blank()).unwrap();
    assert!(r1cs.rows() > 3 * crate::CHUNK_ROWS);
    let program = compile(circuit.blank()).unwrap();
    assert!(program.resident_bytes() * 12 < r1cs.resident_bytes());
    assert_eq!(program.densities(), r1cs.densities());
    let plain = compiler::boolean_columns(&r1cs);
    assert_eq!(program.boolean_columns(), plain);
    let w = witness(circuit).unwrap();
    let oracle = evaluate(&r1cs, &w, None).unwrap();
    let [a, b, _] = run(&program, &PackedBuilder::pack(&w));
    assert!(a == oracle.a && b == oracle.b);
    assert_eq!(check(&program, &w).unwrap(), None);
    for row in [0, 8_191, 8_192, r1cs.rows() - 1] {
        let mut values = w.values().to_vec();
        let (cols, _) = (r1cs.c().row(row).unwrap().cols, ());
        let Some(&col) = cols.last() else { continue };
        values[col as usize] += Scalar::from(5);
        let bad = Witness::new(values, w.num_inputs()).unwrap();
        let expected = naive::check(&r1cs, &bad).unwrap();
        assert!(expected.is_some());
        assert_eq!(check(&program, &bad).unwrap(), expected);
    }
}
