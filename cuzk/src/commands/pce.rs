//! `cuzk pce build` and `cuzk pce inspect`

use std::path::Path;
use std::time::Instant;

use blstrs::Scalar;
use cuzk_core::circuit::Circuit;
use cuzk_pce::disk::{self, Stored};
use serde::Serialize;

use super::Context;
use crate::args::{Pce, PceBuild, PceInspect};
use crate::failure::Failure;
use crate::{output, progress};

#[derive(Debug, Serialize)]
struct PceReport {
    circuit: String,
    inputs: usize,
    aux: usize,
    rows: usize,
    nnz_a: usize,
    nnz_b: usize,
    nnz_c: usize,
    resident_bytes: usize,
    file_bytes: u64,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    build_s: Option<f64>,
}

pub(crate) fn run(context: &Context, command: &Pce) -> Result<(), Failure> {
    match command {
        Pce::Build(args) => build(context, args),
        Pce::Inspect(args) => inspect(context, args),
    }
}

fn build(context: &Context, args: &PceBuild) -> Result<(), Failure> {
    let spinner = progress::spinner("compiling the circuit");
    let started = Instant::now();
    let circuit = Circuit::compile(args.circuit.id())?;
    let build_s = started.elapsed().as_secs_f64();
    spinner.set_message("writing it");
    circuit.write(&args.out)?;
    spinner.finish_and_clear();
    // What is reported was read back from the file.
    report(context, &args.out, Some(build_s))
}

fn inspect(context: &Context, args: &PceInspect) -> Result<(), Failure> {
    report(context, &args.file, None)
}

fn report(context: &Context, file: &Path, build_s: Option<f64>) -> Result<(), Failure> {
    let Stored { header, r1cs } =
        disk::read::<Scalar>(file, None).map_err(cuzk_core::Error::from)?;
    let metadata = std::fs::metadata(file).map_err(|error| Failure::file(file, &error))?;
    let report = PceReport {
        circuit: header.label,
        inputs: r1cs.num_inputs(),
        aux: r1cs.num_aux(),
        rows: r1cs.rows(),
        nnz_a: r1cs.a().nnz(),
        nnz_b: r1cs.b().nnz(),
        nnz_c: r1cs.c().nnz(),
        resident_bytes: r1cs.resident_bytes(),
        file_bytes: metadata.len(),
        fingerprint: header.fingerprint.to_string(),
        build_s,
    };
    output::print(context.json, &report, text)
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
        format!("resident bytes {}", report.resident_bytes),
        format!("file bytes     {}", report.file_bytes),
        format!("fingerprint    {}", report.fingerprint),
    ];
    lines.extend(
        report
            .build_s
            .map(|seconds| format!("built in       {seconds:.2} s")),
    );
    lines.join("\n")
}
