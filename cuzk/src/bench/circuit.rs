//! Compiling, witnesses, evaluation, parameters and whole proofs, against
//! bellperson on the same bundled request.

use bellperson::groth16::{Parameters, generate_random_parameters};
use blstrs::{Bls12, Scalar};
use cuzk_core::Engine;
use cuzk_core::circuits;
use cuzk_core::job::JobOptions;
use cuzk_core::scheduler::priority::Priority;
use cuzk_filecoin::{
    CircuitId, ProofRequest, SectorSize, Statement, blank, decode, decode_reference, vanilla,
};
use cuzk_groth16::params::{ParamCache, ToxicWaste, generate};
use cuzk_kernels::Isa;
use cuzk_pce::{Columns, PackedWitness};
use ff::Field;
use rand::rngs::OsRng;

use super::comparison::{Comparison, alternate, differs, seconds};
use super::engine::engine_config;
use super::recorded::Recorded;
use crate::bench::args::Bench;
use crate::commands::demo::bundled_request;
use crate::commands::params::ensure_parameters;
use crate::commands::pce::plain_bytes;
use crate::commands::{Context, for_one_command};
use crate::failure::Failure;

pub(super) fn bundled_job(args: &Bench) -> Result<Box<dyn Statement>, Failure> {
    if args.sector_size != SectorSize::KiB2 {
        return Err(Failure::input(format!(
            "--sector-size: no request of {} is bundled; use 2KiB",
            args.sector_size
        )));
    }
    Ok(decode(&bundled_request(args.kind())?)?)
}

/// Returns the bundled request, or one over a sector of another size.
fn request(args: &Bench) -> Result<ProofRequest, Failure> {
    match args.sector_size {
        SectorSize::KiB2 => bundled_request(args.kind()),
        size => Ok(vanilla::make(args.kind(), size, 0)?),
    }
}

pub(super) fn of_circuit(comparison: Comparison, args: &Bench) -> Vec<Comparison> {
    vec![Comparison {
        kind: Some(args.kind().to_string()),
        ..comparison
    }]
}

/// Measures compilation. The peer's bytes are those of the plain matrices, which do not
/// fit into memory at full size.
pub(crate) fn pce(args: &Bench) -> Result<Vec<Comparison>, Failure> {
    let id = args.circuit();
    let mut bytes = (0, 0);
    let mut compile = || {
        let circuit = circuits::compile(id)?;
        let program = circuit.program();
        bytes = (program.resident_bytes(), plain_bytes(program));
        Ok(circuit)
    };
    let mut times = Vec::new();
    for _ in 0..args.runs {
        times.push(seconds(&mut compile)?);
    }
    let comparison = Comparison::alone("pce", args.sector_size.to_string(), times);
    Ok(vec![Comparison {
        kind: Some(args.kind().to_string()),
        peer: Some("plain CSR"),
        ours_bytes: Some(bytes.0 as u64),
        peer_bytes: Some(bytes.1),
        ..comparison
    }])
}

pub(crate) fn witness(isa: Isa, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    let job = decode_reference(&request(args)?)?;
    let ours = || Ok(job.witness_in(0, isa.into())?);
    let peer = || Ok(job.reference_witness(0)?);
    let (witness, reference) = (ours()?, peer()?);
    let aux = reference.scalar_aux();
    if !same_aux(&witness, &aux) {
        return Err(differs("witness"));
    }
    let peer_values = reference.scalar_inputs().len() + aux.len();
    let medians = alternate(args.runs, ours, peer)?;
    let comparison = medians.into_comparison("witness", args.sector_size.to_string(), "bellperson");
    Ok(of_circuit(
        Comparison {
            ours_bytes: Some(witness.resident_bytes() as u64),
            peer_bytes: Some((size_of::<Scalar>() * peer_values) as u64),
            ..comparison
        },
        args,
    ))
}

/// Returns true if the auxiliary values are the same. The inputs are not compared, because
/// bellperson's system has an additional ONE in some kinds.
fn same_aux(witness: &PackedWitness<Scalar>, aux: &[Scalar]) -> bool {
    let equal = |(index, value): (usize, &Scalar)| witness.aux(index) == *value;
    witness.num_aux() == aux.len() && aux.iter().enumerate().all(equal)
}

pub(crate) fn params(isa: Isa, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    let id = args.circuit();
    let waste = ToxicWaste::from_seed(0);
    // Before the clock starts, so the peer is spared the synthesis. It takes some milliseconds.
    let rows = blank::record(id)?;
    let peer = || {
        let made: Result<Parameters<Bls12>, _> =
            generate_random_parameters(Recorded(&rows), &mut OsRng);
        made.map_err(|error| Failure::failed(format!("bellperson: {error}")))
    };
    let ours = || {
        let circuit = circuits::compile(id)?;
        let mut bytes = Vec::new();
        generate(circuit.program(), &waste, isa, &mut bytes, |_, _| ())
            .map_err(|error| Failure::failed(error.to_string()))?;
        Ok(bytes)
    };
    let medians = alternate(args.runs, ours, peer)?;
    let comparison = medians.into_comparison("params", args.sector_size.to_string(), "bellperson");
    Ok(of_circuit(comparison, args))
}

/// Makes the parameters of 2 KiB, which takes seconds. Those of other sizes must exist.
fn parameters(context: &Context, id: CircuitId) -> Result<(), Failure> {
    if id.sector_size == SectorSize::KiB2 {
        ensure_parameters(context, id)?;
        return Ok(());
    }
    let cache = ParamCache::new(&context.config.srs.param_cache);
    let files = circuits::parameter_files(id)?;
    if cache.has(&files) {
        return Ok(());
    }
    Err(Failure::input(format!(
        "the parameters of {id}, {}, are missing; test parameters are made by `cuzk params generate \
         --kind {} --sector-size {}`",
        cache.params_path(&files).display(),
        id.kind,
        id.sector_size
    )))
}

/// Measures the engine from the request to the verified proof, against the peer's proof
/// alone.
pub(crate) fn prove(context: &Context, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    parameters(context, args.circuit())?;
    let request = request(args)?;
    let job = decode_reference(&request)?;
    if job.partitions() != 1 {
        return Err(Failure::input(format!(
            "--sector-size: a proof of {} has {} partitions, and the peer makes one; use 2KiB",
            args.circuit(),
            job.partitions()
        )));
    }
    let id = job.circuit();
    let path = ParamCache::new(&context.config.srs.param_cache)
        .params_path(&circuits::parameter_files(id)?);
    let mapped = Parameters::<Bls12>::build_mapped_parameters(path, false)
        .map_err(|error| Failure::failed(error.to_string()))?;
    let engine = for_one_command(Engine::start(engine_config(context))?);
    // The pool of gpu_threads is made once a process. A critical proof does not use it, and runs
    // on the threads of synthesis only.
    let options = JobOptions {
        priority: (args.threads.len() > 1).then_some(Priority::Critical),
        ..JobOptions::default()
    };
    let ours = || Ok(engine.submit_with(&request, options.clone())?.wait()?);
    // The circuit is compiled once per engine, not once per proof.
    ours()?;
    let peer = || {
        let (r, s) = (Scalar::random(OsRng), Scalar::random(OsRng));
        Ok(job.reference_proof(0, &mapped, r, s)?)
    };
    // Ours read its parameters in the proof before. So does the peer.
    peer()?;
    let medians = alternate(args.runs, ours, peer)?;
    let comparison = medians.into_comparison("prove", args.sector_size.to_string(), "bellperson");
    Ok(of_circuit(comparison, args))
}
