//! `cuzk evict CIRCUIT…`: makes a daemon let go of circuits and parameters.

use bytesize::ByteSize;
use clap::Args;
use serde::Serialize;

use super::Context;
use super::client::{Daemon, wait};
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Evict {
    #[command(flatten)]
    daemon: Daemon,
    /// The circuits, for example porep-32g, snap-32g, wpost-32g or winning-32g.
    #[arg(value_name = "CIRCUIT", required = true)]
    circuits: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Evicted<'a> {
    circuit_id: &'a str,
    was_loaded: bool,
    freed_bytes: u64,
}

pub(crate) fn run(context: &Context, args: &Evict) -> Result<(), Failure> {
    wait("some circuits may be evicted", async {
        let client = args.daemon.connect().await?;
        for circuit_id in &args.circuits {
            let reply = client.evict(circuit_id).await?;
            let evicted = Evicted {
                circuit_id,
                was_loaded: reply.was_loaded,
                freed_bytes: reply.freed_bytes,
            };
            output::print(context.json, &evicted, |evicted| match evicted.was_loaded {
                true => format!("{circuit_id}: {} freed", ByteSize(evicted.freed_bytes)),
                false => format!("{circuit_id}: nothing to free: it is not loaded"),
            })?;
        }
        Ok(())
    })
}
