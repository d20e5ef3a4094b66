//! A constraint that does not hold, as `cuzk synth --check` and `cuzk prove` tell it.
//!
//! A request whose vanilla proof is false is refused when it is read, so it has no witness. Here the
//! statement is true, and the compiled circuit in the cache has one row that is altered. The
//! invariant: the witness of the bundled request fails in that row, and in no other one.

use std::cell::Cell;

use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use cuzk_core::circuits;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize, blank};
use ff::Field;

use super::messages::{has_code, linked_cache, stderr};
use super::*;

const ID: CircuitId = CircuitId {
    kind: ProofKind::SnapDeals,
    sector_size: SectorSize::KiB2,
};

/// The row may be altered from here on. The circuit has 1,705,039 rows.
const FROM_ROW: usize = 1_500_000;

/// The circuit of the kind, of which one row has ONE more in B. Its number is told.
struct Altered<'a>(&'a Cell<Option<usize>>);

impl Circuit<Scalar> for Altered<'_> {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut altering = Altering {
            rows: 0,
            altered: None,
            cs,
        };
        let circuit = blank::blank(ID).unwrap();
        circuit.synthesize(&mut altering)?;
        self.0.set(altering.altered);
        Ok(())
    }
}

/// Passes a circuit on. It alters the first row from [`FROM_ROW`] on whose B is ONE. Where A·B = C
/// held, it holds then only if C is 0. Not A, because an engine reads C in the place of a long A of
/// such a row, and its proof would be true.
struct Altering<'a, CS> {
    rows: usize,
    altered: Option<usize>,
    cs: &'a mut CS,
}

impl<CS: ConstraintSystem<Scalar>> ConstraintSystem<Scalar> for Altering<'_, CS> {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, name: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.cs.alloc(name, value)
    }

    fn alloc_input<F, A, AR>(&mut self, name: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.cs.alloc_input(name, value)
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, name: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        let b = b(LinearCombination::zero());
        let terms: Vec<_> = b
            .iter()
            .map(|(variable, value)| (variable, *value))
            .collect();
        let is_one = terms == [(CS::one(), Scalar::ONE)];
        let is_altered = self.altered.is_none() && self.rows >= FROM_ROW && is_one;
        if is_altered {
            self.altered = Some(self.rows);
        }
        let b = if is_altered { b + CS::one() } else { b };
        self.cs.enforce(name, a, |_| b, c);
        self.rows += 1;
    }

    fn push_namespace<NR, N>(&mut self, name: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
        self.cs.push_namespace(name);
    }

    fn pop_namespace(&mut self) {
        self.cs.pop_namespace();
    }

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}

/// Returns a folder with the parameters and an altered circuit, and the row that is altered.
fn altered_cache() -> (tempfile::TempDir, usize) {
    let row = Cell::new(None);
    let program = cuzk_pce::compile(Altered(&row)).unwrap();
    let folder = linked_cache("snap-deals");
    let path = circuits::cache_path(ID, folder.path()).unwrap();
    // It is a link to the circuit of all tests.
    std::fs::remove_file(&path).unwrap();
    let circuit = cuzk_groth16::Circuit::new(ID.to_string(), program);
    circuit.write(&path).unwrap();
    (folder, row.get().unwrap())
}

#[test]
fn a_row_that_does_not_hold_is_told_with_the_part_of_the_proof() {
    let (cache, row) = altered_cache();
    let part = blank::row_name(ID, row).unwrap().unwrap();
    assert!(part.contains('/'), "{part}");
    let request = data("snap-deals.json");
    let synth = ["synth", "--check", "--request", text(&request)];

    let output = cuzk_in(cache.path(), &synth);
    let told = String::from_utf8(output.stdout.clone()).unwrap();
    let expected = format!("; constraint {row} is the first that does not hold ({part})\n");
    assert!(told.ends_with(&expected), "{told}");
    let error = format!(
        "partition 0: the vanilla proof does not satisfy constraint {row} ({part}); it was altered"
    );
    assert!(stderr(&output).contains(&error), "{}", stderr(&output));
    has_code("CUZK-0009", 2, &output);

    let output = cuzk_in(cache.path(), &[&synth[..], &["--json"]].concat());
    has_code("CUZK-0009", 2, &output);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["satisfied"], false, "{report}");
    assert_eq!(report["first_bad_row"], row, "{report}");
    assert_eq!(report["part"], part, "{report}");

    // The engine proves it, withholds the proof, and then looks at the statement.
    let proof = cache.path().join("proof");
    let prove = ["prove", "--request", text(&request), "--out", text(&proof)];
    let output = cuzk_in(cache.path(), &prove);
    assert!(stderr(&output).contains(&error), "{}", stderr(&output));
    has_code("CUZK-0009", 2, &output);
    assert!(!proof.exists());
}
