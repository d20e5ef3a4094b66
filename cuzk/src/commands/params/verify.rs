//! `cuzk params verify`

use std::time::Instant;

use clap::Args;
use cuzk_core::circuits;
use cuzk_groth16::params::{ParamCache, ParamsError, Relation, check_points, check_relation};
use serde::Serialize;

use super::check_there;
use crate::circuit_args::CircuitArgs;
use crate::commands::Context;
use crate::failure::Failure;
use crate::output;
use crate::progress::Doing;

#[derive(Debug, Args)]
pub(crate) struct ParamsVerify {
    #[command(flatten)]
    pub(crate) circuit: CircuitArgs,
}

#[derive(Debug, Serialize)]
struct VerifyReport {
    circuit: String,
    params: String,
    /// True if nothing is wrong, as far as it was checked.
    valid: bool,
    /// What another check must show.
    not_checked: String,
    points: usize,
    verify_s: f64,
}

/// Parameters of the circuit are right for proofs. Who made them is not in the file.
const NOT_CHECKED: &str = "who made the parameters; `cuzk params list --check` compares whole \
                           files with the network's digests";

pub(super) fn run(context: &Context, args: &ParamsVerify) -> Result<(), Failure> {
    let id = args.circuit.id();
    let started = Instant::now();
    let param_cache = &context.config.srs.param_cache;
    check_there(context, id)?;
    let doing = Doing::begin("getting the compiled circuit");
    let circuit = circuits::cached(id, param_cache)?;
    let lengths = circuit.query_lengths();
    let loaded = ParamCache::new(param_cache)
        .load(&circuits::parameter_files(id)?, &lengths)
        .map_err(cuzk_core::Error::from)?;
    let (pool, isa) = (context.config.synthesis.pool()?, context.config.cpu.isa);
    let checked = pool.install(|| -> Result<Relation, ParamsError> {
        check_points(loaded.mapped(), isa, |query| {
            doing.now(&format!("checking {query}"));
        })?;
        let rows = (circuit.program(), circuit.densities());
        check_relation(loaded.mapped(), rows, isa, |what| {
            doing.now(&format!("checking {what}"));
        })
    });
    drop(doing);
    let not_checked = match checked.map_err(cuzk_core::Error::from)? {
        Relation::Holds => NOT_CHECKED.to_owned(),
        Relation::Unsolved { rows } => format!(
            "that the points of H, L and A are those of the circuit, {rows} rows of which have \
             no variable of their own; {NOT_CHECKED}"
        ),
    };
    let report = VerifyReport {
        circuit: id.to_string(),
        params: loaded.mapped().path().display().to_string(),
        valid: true,
        not_checked,
        points: lengths.ic + lengths.h + lengths.l + lengths.a + 2 * lengths.b,
        verify_s: started.elapsed().as_secs_f64(),
    };
    output::print(context.json, &report, |report| {
        format!(
            "{}\nvalid as far as it was checked: {} points in {:.1} s\nnot checked: {}",
            report.params, report.points, report.verify_s, report.not_checked
        )
    })
}
