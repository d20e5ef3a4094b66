//! `cuzk preload CIRCUIT…`: makes a daemon load circuits and parameters.

use clap::Args;
use serde::Serialize;

use super::Context;
use super::client::{Daemon, wait};
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Preload {
    #[command(flatten)]
    daemon: Daemon,
    /// The circuits, for example porep-32g, snap-32g, wpost-32g or winning-32g.
    #[arg(value_name = "CIRCUIT", required = true)]
    circuits: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Preloaded<'a> {
    circuit_id: &'a str,
    already_loaded: bool,
    load_time_ms: u64,
}

pub(crate) fn run(context: &Context, args: &Preload) -> Result<(), Failure> {
    wait("the daemon goes on loading", async {
        let client = args.daemon.connect().await?;
        for circuit_id in &args.circuits {
            let reply = client.preload(circuit_id).await?;
            let preloaded = Preloaded {
                circuit_id,
                already_loaded: reply.already_loaded,
                load_time_ms: reply.load_time_ms,
            };
            output::print(context.json, &preloaded, |preloaded| {
                match preloaded.already_loaded {
                    true => format!("{circuit_id}: it was loaded already"),
                    false => format!("{circuit_id}: loaded in {} ms", preloaded.load_time_ms),
                }
            })?;
        }
        Ok(())
    })
}
