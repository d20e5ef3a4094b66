//! Proofs of circuits that are not Filecoin's, from an instance to the bytes. Our prover and
//! bellperson's take turns, with the same parameters and randomness. A second table has the
//! stages of ours. The arm `multiples` has multiples of the parameters' points, which are made once;
//! a third table has their size and that of the parameters.
//!
//! `cargo bench -p benches --bench any_circuit -- 16 20` names other sizes than 2^16 rows.

use bellperson::{
    Circuit as Instance,
    groth16::{Parameters, Proof, create_proof},
};
use benches::{
    Result,
    mode::{Mode, cores},
    multiples::WithMultiples,
    stage::agree,
    study::{Study, median, time},
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
use cuzk_timeline::Stage;
use std::{sync::Arc, time::Duration};

/// A circuit with one witness, and what both provers need.
struct Case<C> {
    name: String,
    instance: C,
    circuit: Arc<Circuit>,
    params: Arc<MappedParams>,
    theirs: Parameters<Bls12>,
    scalars: [Scalar; 2],
    /// How long the parameters took to make.
    setup: Duration,
}

impl<C: Instance<Scalar> + Clone + Send> Case<C> {
    fn new(name: &str, log: u32, blank: C, instance: C) -> Result<Self> {
        let circuit = compile(name, blank)?;
        let (params, setup) = time(|| setup(&circuit, &ToxicWaste::from_seed(0)));
        let params = params?;
        Ok(Self {
            setup,
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
        Ok(self.prover_on(device, &self.params)?.with_row_check(check))
    }

    fn prover_on(&self, device: Arc<ProvingDevice>, params: &Arc<MappedParams>) -> Result<Prover> {
        let (circuit, params) = (Arc::clone(&self.circuit), Arc::clone(params));
        Ok(Prover::on(circuit, params, device)?)
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

    /// Makes multiples of the parameters' points, if the machine has instructions for them.
    fn multiples(&self) -> Result<Option<(Isa, WithMultiples)>> {
        let make = |isa| Ok((isa, WithMultiples::make(&self.params, &self.circuit, isa)?));
        Isa::ifma().map(make).transpose()
    }

    /// Returns the row of the table of parameters.
    fn parameters(&self, made: Option<&WithMultiples>) -> Vec<String> {
        let params_bytes = self.params.bytes().len() as f64;
        let multiples_bytes = made.map(|made| made.file_bytes as f64);
        vec![
            self.name.clone(),
            table::megabytes(params_bytes),
            table::seconds(self.setup.as_secs_f64()),
            table::figure(multiples_bytes, table::megabytes),
            table::figure(made.map(|made| made.took.as_secs_f64()), table::seconds),
        ]
    }

    /// Proves in turns; returns the rows of all tables.
    fn measure(&self, criterion: &mut Criterion, mode: Mode, rounds: usize) -> Result<Tables> {
        let mut study = Study::<Duration>::new();
        let expected = self.their_proof()?;
        let bellperson = study.arm("bellperson", || timed(|| self.their_proof()));
        let (mut arms, mut devices) = (Vec::new(), Vec::new());
        for isa in [Some(Isa::SCALAR), Isa::ifma()].into_iter().flatten() {
            let prover = self.prover(isa, RowCheck::Rows)?;
            agree(self.same_proof(&prover)? == expected, &self.name)?;
            let same = move || timed(|| self.same_proof(&prover));
            let device = Arc::new(ProvingDevice::cpu(cores(), isa)?);
            let prover = self.prover_on(Arc::clone(&device), &self.params)?;
            devices.push((format!("{isa}, fresh"), device));
            let fresh = move || timed(|| self.fresh_proof(&prover));
            let prover = self.prover(isa, RowCheck::Counts)?;
            let counts = move || timed(|| self.fresh_proof(&prover));
            arms.push(study.arm(format!("{isa}, same bytes"), same));
            arms.push(study.arm(format!("{isa}, fresh"), fresh));
            arms.push(study.arm(format!("{isa}, fresh, rows unchecked"), counts));
        }
        let made = self.multiples()?;
        if let Some((isa, made)) = &made {
            let device = Arc::new(ProvingDevice::cpu(cores(), *isa)?);
            let prover = self.prover_on(Arc::clone(&device), &made.params)?;
            devices.push((format!("{isa}, fresh, multiples"), device));
            let multiples = move || timed(|| self.fresh_proof(&prover));
            arms.push(study.arm(format!("{isa}, fresh, multiples"), multiples));
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
        let stages = devices.iter().flat_map(|(arm, device)| {
            let rows = stage_rows(device).into_iter();
            rows.map(|row| [vec![self.name.clone(), arm.clone()], row].concat())
        });
        let parameters = self.parameters(made.as_ref().map(|(_, made)| made));
        let proofs = arms.iter().map(row).collect();
        Ok([proofs, stages.collect(), vec![parameters]])
    }
}

/// The rows of the table of proofs, of that of stages, and of that of parameters.
type Tables = [Vec<Vec<String>>; 3];

/// The stages of a proof that do not contain one another.
const STAGES: [Stage; 8] = [
    Stage::CircuitWitness,
    Stage::Prepare,
    Stage::Evaluate,
    Stage::Quotient,
    Stage::Msm,
    Stage::BG2,
    Stage::Assemble,
    Stage::Verify,
];

/// Returns the median time of each stage over the proofs on `device`, and its share of all.
fn stage_rows(device: &ProvingDevice) -> Vec<Vec<String>> {
    let spans = device.timeline().spans();
    let stages: Vec<(Stage, f64)> = (STAGES.iter())
        .filter_map(|&stage| {
            let of_stage = spans.iter().filter(|span| span.stage == stage);
            let seconds = median(of_stage.map(|span| span.length().as_secs_f64()))?;
            Some((stage, seconds))
        })
        .collect();
    let whole: f64 = stages.iter().map(|(_, seconds)| seconds).sum();
    let row = |&(stage, seconds): &(Stage, f64)| {
        vec![
            stage.name().to_owned(),
            table::seconds(seconds),
            format!("{:.1} %", 100.0 * seconds / whole),
        ]
    };
    stages.iter().map(row).collect()
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
    let mut tables = Tables::default();
    let mut add = |of_case: Tables| {
        for (table, rows) in tables.iter_mut().zip(of_case) {
            table.extend(rows);
        }
    };
    for log in logs(mode) {
        let rounds = if log < 18 { 3 } else { 2 };
        // A round of MiMC has two rows.
        let blank = Mimc::blank(1 << (log - 1));
        let mimc = Case::new("MiMC", log, blank.clone(), blank.with([1, 2]))?;
        add(mimc.measure(&mut criterion, mode, rounds)?);
        let blank = Sha256Chain::blank(links(1 << log)?);
        let chain = Case::new("SHA-256", log, blank.clone(), blank.with(0xa5))?;
        add(chain.measure(&mut criterion, mode, rounds)?);
    }
    if mode == Mode::Measure {
        print(&tables);
    }
    criterion.final_summary();
    Ok(())
}

fn print([proofs, stages, parameters]: &Tables) {
    table::print(
        &format!(
            "from an instance to a proof, ours verified, medians; `ratio` is bellperson's time by \
             ours; {} threads",
            cores(),
        ),
        &["circuit", "rows", "ours", "bellperson", "ours", "ratio"],
        proofs,
    );
    table::print(
        "the stages of ours, medians",
        &["circuit", "ours", "stage", "time", "share"],
        stages,
    );
    table::print(
        "the parameters, their multiples, and the time to make each",
        &["circuit", "parameters", "made in", "multiples", "made in"],
        parameters,
    );
}
