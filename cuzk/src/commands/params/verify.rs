//! `cuzk params verify`

use std::path::Path;
use std::time::Instant;

use bytesize::ByteSize;
use clap::Args;
use cuzk_core::circuits;
use cuzk_core::config::available_memory_bytes;
use cuzk_core::error::ErrorCode;
use cuzk_filecoin::CircuitId;
use cuzk_groth16::params::{
    ParamCache, ParamsError, Relation, check_points, check_relation, relation_bytes,
};
use serde::Serialize;

use super::check_there;
use crate::circuit_args::CircuitArgs;
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::{self, shown};
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
    /// True, because parameters that are wrong, or were not checked whole, end in an error.
    valid: bool,
    /// The part that another check must show.
    not_checked: &'static str,
    points: usize,
    verify_s: f64,
}

/// Parameters of the circuit are right for proofs. Their origin is not in the file.
const NOT_CHECKED: &str = "the origin of the parameters; `cuzk params list --check` compares whole \
                           files with the network's digests";

pub(super) fn run(context: &Context, args: &ParamsVerify) -> Result<(), Failure> {
    let id = args.circuit.id();
    let started = Instant::now();
    let param_cache = &context.config.srs.param_cache;
    check_there(context, id)?;
    let doing = Doing::begin("getting the compiled circuit");
    let circuit = circuits::cached(id, param_cache)?;
    check_memory(
        id,
        relation_bytes(circuit.program()),
        available_memory_bytes(),
    )?;
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
    let path = loaded.mapped().path();
    must_hold(path, checked.map_err(cuzk_core::Error::from)?)?;
    let report = VerifyReport {
        circuit: id.to_string(),
        params: shown(path),
        valid: true,
        not_checked: NOT_CHECKED,
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

/// Returns an error if the check has less memory than it needs. Otherwise the system would end
/// the process, or others, after minutes.
fn check_memory(id: CircuitId, need_bytes: u64, free_bytes: Option<u64>) -> Result<(), Failure> {
    let Some(free_bytes) = free_bytes.filter(|&free_bytes| free_bytes < need_bytes) else {
        return Ok(());
    };
    Err(Failure::new(
        ErrorCode::NoMemory,
        format!(
            "the check of the parameters of {id} needs {} of memory, and {} are free; end other \
             programs, or check on a machine with more memory; `cuzk params list --check` \
             compares files with the network's digests and needs little memory",
            ByteSize(need_bytes),
            ByteSize(free_bytes)
        ),
    ))
}

/// Returns an error for parameters that were not checked against the circuit.
fn must_hold(path: &Path, relation: Relation) -> Result<(), Failure> {
    let Relation::Unsolved { rows } = relation else {
        return Ok(());
    };
    Err(Failure::failed(format!(
        "{}: each point is in its group, but it was not checked that the points are those of the \
         circuit: {rows} of its rows have no variable of their own; compare the file with the \
         network's digest (`cuzk params list --check`)",
        shown(path)
    )))
}

#[cfg(test)]
mod tests {
    use cuzk_filecoin::{ProofKind, SectorSize};

    use super::*;

    #[test]
    fn a_check_without_memory_says_what_it_needs() {
        let id = CircuitId {
            kind: ProofKind::Porep,
            sector_size: SectorSize::GiB32,
        };
        assert!(check_memory(id, 5 << 30, Some(5 << 30)).is_ok());
        assert!(check_memory(id, 5 << 30, None).is_ok());
        let failure = check_memory(id, 33 << 30, Some(20 << 30)).unwrap_err();
        assert_eq!(failure.code(), ErrorCode::NoMemory);
        let message = failure.message().unwrap();
        for words in ["needs 33.0 GiB", "20.0 GiB are free", "porep"] {
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn parameters_that_were_not_checked_whole_are_an_error_that_says_so() {
        let path = Path::new("/p/x.params");
        assert!(must_hold(path, Relation::Holds).is_ok());
        let failure = must_hold(path, Relation::Unsolved { rows: 3 }).unwrap_err();
        let message = failure.message().unwrap();
        for words in ["/p/x.params", "not checked", "3 of its rows", "--check"] {
            assert!(message.contains(words), "{message}");
        }
    }
}
