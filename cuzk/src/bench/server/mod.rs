//! `cuzk bench server`: a daemon in a process of its own, as its clients meet it.
//!
//! The invariants: the daemon has the configuration of this process, and ends with it. Nothing
//! of it is left on disk.

mod added;
mod daemon;
mod flood;
mod requests;
mod senders;

use std::path::Path;

use cuzk_core::config::Config;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};
use cuzk_files::Scratch;
use cuzk_tune::machine::Host;

use super::engine::engine_config;
use crate::bench::args::Bench;
use crate::commands::Context;
use crate::commands::params::ensure_parameters;
use crate::failure::{Failure, failed};

/// Measures, or sends the flood for the process that does.
pub(super) fn run(context: &Context, args: &Bench, host: &Host) -> Result<(), Failure> {
    if args.child {
        return senders::run();
    }
    let kinds = kinds(args)?;
    for &kind in &kinds {
        let id = CircuitId {
            kind,
            sector_size: SectorSize::KiB2,
        };
        ensure_parameters(context, id)?;
    }
    // The next one removes that of a process that was killed. It is locked, and a daemon locks the
    // folder of its socket, too.
    let scratch = Scratch::new().map_err(failed)?;
    let folder = scratch.path().join("daemon");
    std::fs::create_dir(&folder).map_err(failed)?;
    if args.flood {
        flood::run(context, args, host, &folder)
    } else {
        added::run(context, args, host, &folder, &kinds)
    }
}

/// Returns the kinds that are measured. A flood needs both.
fn kinds(args: &Bench) -> Result<Vec<ProofKind>, Failure> {
    let kinds = [ProofKind::WinningPost, ProofKind::Porep];
    match args.kind {
        None => Ok(kinds.to_vec()),
        Some(kind) if kinds.contains(&kind) && !args.flood => Ok(vec![kind]),
        Some(_) => Err(Failure::input(
            "--kind: the stage server measures winning-post and porep, and both with --flood",
        )),
    }
}

/// Returns the configuration of the engines, with a journal in `folder`.
fn config_with_journal(context: &Context, folder: &Path, journal: &str) -> Config {
    let mut config = engine_config(context);
    config.jobs.journal = Some(folder.join(journal));
    config
}
