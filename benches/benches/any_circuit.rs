//! Proofs of circuits that are not Filecoin's, from an instance to the bytes. Our prover and
//! bellperson's take turns, with the same parameters and randomness.
//!
//! `cargo bench -p benches --bench any_circuit -- 16 20` names other sizes than 2^16 rows.

use bellperson::{
    Circuit as Instance,
    groth16::{Parameters, Proof, create_proof},
};
use benches::{
    Result,
    mode::{Mode, cores},
    stage::agree,
    study::{Study, time},
    table,
};
use blstrs::{Bls12, Scalar};
use criterion::Criterion;
use cuzk_groth16::{
    Circuit, Prover, ProvingDevice, RowCheck,
    backend::Randomness,
    compile,
    params::{MappedParams, ToxicWaste},
    setup,
};
use cuzk_kernels::Isa;
use cuzk_testing::circuits::{Mimc, Sha256Chain};
use cuzk_tune::machine::Host;
use std::{path::Path, sync::Arc, time::Duration};

/// A circuit with one witness, and what both provers need.
struct Case<C> {
    name: String,
    instance: C,
    circuit: Arc<Circuit>,
    params: Arc<MappedParams>,
    theirs: Parameters<Bls12>,
    scalars: [Scalar; 2],
}

impl<C: Instance<Scalar> + Clone + Send> Case<C> {
    fn new(name: &str, log: u32, blank: C, instance: C) -> Result<Self> {
        let circuit = compile(name, blank)?;
        let params = setup(&circuit, &ToxicWaste::from_seed(0))?;
        Ok(Self {
            name: format!("{name} 2^{log}"),
            instance,
            theirs: Parameters::read(params.bytes(), false)?,
            circuit: Arc::new(circuit),
            params: Arc::new(params),
            scalars: [3, 5].map(Scalar::from),
        })
    }

    fn prover(&self, isa: Isa, check: RowCheck) -> Result<Prover> {
        let device = Arc::new(ProvingDevice::cpu(cores(), isa)?);
        let (circuit, params) = (Arc::clone(&self.circuit), Arc::clone(&self.params));
        Ok(Prover::on(circuit, params, device)?.with_row_check(check))
    }

    fn their_proof(&self) -> Result<Vec<u8>> {
        let [r, s] = self.scalars;
        let proof: Proof<Bls12> = create_proof(self.instance.clone(), &self.theirs, r, s)?;
        let mut bytes = Vec::new();
        proof.write(&mut bytes)?;
        Ok(bytes)
    }

    /// Our proof with bellperson's kind of randomness, which takes an MSM more.
    fn same_proof(&self, prover: &Prover) -> Result<Vec<u8>> {
        let [r, s] = self.scalars;
        let randomness = Randomness::Added { r, s };
        let proof = prover.prove_with(self.instance.clone(), randomness)?;
        Ok(proof.as_bytes().to_vec())
    }

    fn fresh_proof(&self, prover: &Prover) -> Result<Vec<u8>> {
        let proof = prover.prove(self.instance.clone())?;
        Ok(proof.as_bytes().to_vec())
    }

    /// Proves in turns; returns the rows of the table.
    fn measure(
        &self,
        criterion: &mut Criterion,
        mode: Mode,
        rounds: usize,
    ) -> Result<Vec<Vec<String>>> {
        let mut study = Study::<Duration>::new();
        let expected = self.their_proof()?;
        let bellperson = study.arm("bellperson", || timed(|| self.their_proof()));
        let mut arms = Vec::new();
        for isa in [Some(Isa::SCALAR), Isa::ifma()].into_iter().flatten() {
            let prover = self.prover(isa, RowCheck::Rows)?;
            agree(self.same_proof(&prover)? == expected, &self.name)?;
            let same = move || timed(|| self.same_proof(&prover));
            let prover = self.prover(isa, RowCheck::Rows)?;
            let fresh = move || timed(|| self.fresh_proof(&prover));
            let prover = self.prover(isa, RowCheck::Counts)?;
            let counts = move || timed(|| self.fresh_proof(&prover));
            arms.push(study.arm(format!("{isa}, same bytes"), same));
            arms.push(study.arm(format!("{isa}, fresh"), fresh));
            arms.push(study.arm(format!("{isa}, fresh, rows unchecked"), counts));
        }
        study.bench(criterion, &self.name, mode, rounds)?;
        let seconds = |wall: &Duration| wall.as_secs_f64();
        let row = |&arm: &usize| {
            vec![
                self.name.clone(),
                self.circuit.program().rows().to_string(),
                study.name(arm).to_owned(),
                table::figure(study.median_s(bellperson), table::seconds),
                table::figure(study.median_s(arm), table::seconds),
                table::figure(study.ratio(bellperson, arm, seconds), table::times),
            ]
        };
        Ok(arms.iter().map(row).collect())
    }
}

fn timed(work: impl FnOnce() -> Result<Vec<u8>>) -> Result<Duration> {
    let (result, wall) = time(work);
    result.map(|_| wall)
}

/// Returns the most links of a chain that has at most so many rows, and one at least.
fn links(rows_max: usize) -> Result<usize> {
    let rows = |links| -> Result<usize> {
        let circuit = compile("links", Sha256Chain::blank(links))?;
        Ok(circuit.program().rows())
    };
    let [one, two] = [rows(1)?, rows(2)?];
    Ok(1 + rows_max.saturating_sub(one) / (two - one))
}

/// Returns the sizes that the arguments name, as logarithms.
fn logs(mode: Mode) -> Vec<u32> {
    let named: Vec<u32> = Mode::arguments()
        .filter_map(|argument| argument.parse().ok())
        .filter(|log| (2..=27).contains(log))
        .collect();
    match named.is_empty() {
        true => vec![mode.pick(16, 2)],
        false => named,
    }
}

fn main() -> Result<()> {
    let mode = Mode::current();
    let mut criterion = Criterion::default().configure_from_args();
    let mut rows = Vec::new();
    for log in logs(mode) {
        let rounds = if log < 18 { 3 } else { 2 };
        // A round of MiMC has two rows.
        let blank = Mimc::blank(1 << (log - 1));
        let mimc = Case::new("MiMC", log, blank.clone(), blank.with([1, 2]))?;
        rows.extend(mimc.measure(&mut criterion, mode, rounds)?);
        let blank = Sha256Chain::blank(links(1 << log)?);
        let chain = Case::new("SHA-256", log, blank.clone(), blank.with(0xa5))?;
        rows.extend(chain.measure(&mut criterion, mode, rounds)?);
    }
    if mode == Mode::Measure {
        table::print(
            &format!(
                "from an instance to a proof, ours verified, medians; `ratio` is bellperson's \
                 time by ours; {} threads; {}",
                cores(),
                Host::read(Path::new("/"), Isa::best().name())
            ),
            &["circuit", "rows", "ours", "bellperson", "ours", "ratio"],
            &rows,
        );
    }
    criterion.final_summary();
    Ok(())
}
