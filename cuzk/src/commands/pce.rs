//! `cuzk pce build` and `cuzk pce inspect`

use std::path::{Path, PathBuf};
use std::time::Instant;

use blstrs::Scalar;
use clap::{Args, Subcommand};
use cuzk_core::circuits;
use cuzk_core::error::ErrorCode;
use cuzk_filecoin::CircuitId;
use cuzk_files::Scratch;
use cuzk_memory::{Cancellation, Checkpoint};
use cuzk_pce::disk::{DiskError, DiskFault};
use cuzk_pce::{Program, program};
use indicatif::HumanBytes;
use serde::Serialize;

use super::Context;
use super::params::check_cache;
use crate::circuit_args::CircuitArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output;
use crate::output_path::OutputPath;
use crate::progress::Doing;

#[derive(Debug, Subcommand)]
pub(crate) enum Pce {
    /// Compile a circuit into a file.
    Build(PceBuild),
    /// Check a compiled circuit's file and describe its content.
    Inspect(PceInspect),
}

#[derive(Debug, Args)]
pub(crate) struct PceBuild {
    #[command(flatten)]
    pub(crate) circuit: CircuitArgs,
    /// The file for the compiled circuit. Without it, the file in the parameter cache that an
    /// engine looks for.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PceInspect {
    /// A compiled circuit.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Serialize)]
struct PceReport {
    circuit: String,
    inputs: usize,
    aux: usize,
    rows: usize,
    nnz_a: u64,
    nnz_b: u64,
    nnz_c: u64,
    resident_bytes: usize,
    /// The size of the same rows as plain matrices.
    plain_bytes: u64,
    file_bytes: u64,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    build_s: Option<f64>,
    load_s: f64,
}

pub(crate) fn run(context: &Context, command: &Pce) -> Result<(), Failure> {
    match command {
        Pce::Build(args) => build(context, args),
        Pce::Inspect(args) => inspect(context, args),
    }
}

fn build(context: &Context, args: &PceBuild) -> Result<(), Failure> {
    let out = OutputPath::new(&place(context, args)?)?;
    let interrupt = Interrupt::watch()?;
    let (id, before, stop) = (args.circuit.id(), out.present(), Cancellation::default());
    let left = || format!("{id}: {}", out.left("compiled circuit", before));
    let (file, stopped) = (out.file().map(Path::to_owned), stop.clone());
    let compile = move || compile(id, file.as_deref(), &stopped);
    let (report, bytes) = interrupt.stops("compiling", left, &stop, compile)??;
    if let Some(bytes) = bytes {
        out.write_unless_stopped("compiled circuit", bytes, &interrupt)?;
    }
    output::print_beside(out.is_stdout(), context.json, &report, text)
}

/// Returns the file that the user named, or that of the parameter cache, whose folder is made.
fn place(context: &Context, args: &PceBuild) -> Result<PathBuf, Failure> {
    if let Some(out) = &args.out {
        return Ok(out.clone());
    }
    let cache = &context.config.srs.param_cache;
    check_cache(cache)?;
    std::fs::create_dir_all(cache).map_err(|error| Failure::file(cache, &error))?;
    Ok(circuits::cache_path(args.circuit.id(), cache)?)
}

/// Compiles a circuit and writes it to `file`. Without one, returns its bytes, by way of a
/// file. The report is about the circuit that was read back.
fn compile(
    id: CircuitId,
    file: Option<&Path>,
    stop: &Cancellation,
) -> Result<(PceReport, Option<Vec<u8>>), Failure> {
    let doing = Doing::begin("compiling the circuit");
    let started = Instant::now();
    let circuit = circuits::compile_while(id, &Checkpoint::new(stop))?;
    let build_s = started.elapsed().as_secs_f64();
    doing.now("writing the circuit");
    if let Some(file) = file {
        circuit.write(file)?;
        return Ok((PceReport::of(file, Some(build_s))?, None));
    }
    let parent = std::env::temp_dir();
    let folder = Scratch::new().map_err(|error| Failure::file(&parent, &error))?;
    let file = folder.path().join("circuit");
    circuit.write(&file)?;
    let bytes = std::fs::read(&file).map_err(|error| Failure::file(&file, &error))?;
    Ok((PceReport::of(&file, Some(build_s))?, Some(bytes)))
}

fn inspect(context: &Context, args: &PceInspect) -> Result<(), Failure> {
    output::print(context.json, &PceReport::of(&args.file, None)?, text)
}

impl PceReport {
    /// Returns the report of the compiled circuit in `file`.
    fn of(file: &Path, build_s: Option<f64>) -> Result<Self, Failure> {
        let started = Instant::now();
        let (header, program) =
            program::read::<Scalar>(file, None).map_err(|error| unusable(file, error))?;
        let load_s = started.elapsed().as_secs_f64();
        let metadata = std::fs::metadata(file).map_err(|error| Failure::file(file, &error))?;
        let [nnz_a, nnz_b, nnz_c] = program.nnz();
        Ok(Self {
            circuit: header.label,
            inputs: program.num_inputs(),
            aux: program.num_aux(),
            rows: program.rows(),
            nnz_a,
            nnz_b,
            nnz_c,
            resident_bytes: program.resident_bytes(),
            plain_bytes: plain_bytes(&program),
            file_bytes: metadata.len(),
            fingerprint: header.fingerprint.to_string(),
            build_s,
            load_s,
        })
    }
}

/// Returns the failure of a file that has no compiled circuit, or a damaged one.
fn unusable(file: &Path, error: DiskError) -> Failure {
    if matches!(error.fault, DiskFault::Magic { .. }) {
        let problem = "not a compiled circuit; name a file that `cuzk pce build` wrote";
        return Failure::new(
            ErrorCode::CircuitFile,
            format!("{}: {problem}", output::shown(file)),
        );
    }
    cuzk_core::Error::from(error).into()
}

/// Returns the bytes of three plain matrices. Each has a row pointer for each row and one
/// more, and a column and a coefficient for each nonzero.
pub(crate) fn plain_bytes(program: &Program<Scalar>) -> u64 {
    let nonzero_bytes = (size_of::<u32>() + size_of::<Scalar>()) as u64;
    let row_pointers = 3 * (program.rows() as u64 + 1);
    row_pointers * size_of::<u32>() as u64 + program.nnz().iter().sum::<u64>() * nonzero_bytes
}

fn text(report: &PceReport) -> String {
    let mut lines = vec![
        format!("circuit        {}", report.circuit),
        format!("inputs         {}", report.inputs),
        format!("aux            {}", report.aux),
        format!("rows           {}", report.rows),
        format!(
            "nonzeros       A {}, B {}, C {}",
            report.nnz_a, report.nnz_b, report.nnz_c
        ),
        format!(
            "in memory      {} (as plain matrices {})",
            HumanBytes(report.resident_bytes as u64),
            HumanBytes(report.plain_bytes)
        ),
        format!("in the file    {}", HumanBytes(report.file_bytes)),
        format!("fingerprint    {}", report.fingerprint),
    ];
    lines.push(format!("loaded in      {:.4} s", report.load_s));
    lines.extend(
        report
            .build_s
            .map(|seconds| format!("built in       {seconds:.2} s")),
    );
    lines.join("\n")
}
