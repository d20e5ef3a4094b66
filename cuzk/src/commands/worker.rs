//! `cuzk worker --cluster nats://HOST:PORT`: this machine proves the partitions of daemons.

use std::sync::Arc;

use clap::Args;
use cuzk_core::config::{Address, ClusterServer};
use cuzk_core::error::ErrorCode;
use cuzk_server::cluster::prover::{OnEvent, PartitionEvent};
use cuzk_server::worker::{self, WorkerError};

use super::Context;
use super::params::check_cache;
use crate::failure::{Failure, lacks_files};
use crate::output::print_lines;

#[derive(Clone, Debug, Args)]
pub(crate) struct WorkerArgs {
    /// A NATS server of the cluster: nats://HOST:PORT or tls://HOST:PORT. The option may be
    /// given several times, and takes the place of cluster.servers.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) cluster: Vec<ClusterServer>,
    /// The name of this worker in the cluster. Several workers on one machine need different
    /// names. The option takes the place of cluster.name.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Serve the page, the metrics and the status of this worker here. Without the option it
    /// opens no port.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) http: Option<Address>,
}

pub(crate) fn run(context: &Context, args: &WorkerArgs) -> Result<(), Failure> {
    let mut config = context.config.clone();
    if !args.cluster.is_empty() {
        config.cluster.servers.clone_from(&args.cluster);
    }
    if let Some(name) = &args.name {
        config.cluster.name.clone_from(name);
    }
    check_cache(&config.srs.param_cache)?;
    let on_event: OnEvent = if context.json {
        Arc::new(print)
    } else {
        Arc::new(|_| ())
    };
    worker::run(config, args.http.as_ref(), on_event).map_err(|error| failure(&error))
}

/// Prints an event as one line of JSON. Nobody may read it, which is no failure.
fn print(event: &PartitionEvent) {
    if let Ok(line) = serde_json::to_string(event) {
        print_lines(&line).ok();
    }
}

fn failure(error: &WorkerError) -> Failure {
    let code = match error {
        WorkerError::Engine(error) => ErrorCode::of(error),
        error if error.is_of_threads() => ErrorCode::Threads,
        error if lacks_files(error) => ErrorCode::OpenFiles,
        error if error.is_input() => ErrorCode::Configuration,
        _ => ErrorCode::Start,
    };
    Failure::new(code, error.to_string())
}
