//! The commands, one file each, and their common input.

pub(crate) mod aggregate;
pub(crate) mod await_;
pub(crate) mod cancel;
mod client;
pub(crate) mod completions;
pub(crate) mod config;
mod daemon_report;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod drain;
pub(crate) mod evict;
mod fleet;
mod job_end;
pub(crate) mod manual;
pub(crate) mod params;
pub(crate) mod pce;
pub(crate) mod plan;
pub(crate) mod preload;
pub(crate) mod prove;
pub(crate) mod proxy;
pub(crate) mod reload;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod submit;
pub(crate) mod support_bundle;
pub(crate) mod synth;
mod table;
pub(crate) mod top;
pub(crate) mod tune;
pub(crate) mod vanilla;
pub(crate) mod verify;
pub(crate) mod version;
mod waiting;
pub(crate) mod worker;

use std::path::Path;

use cuzk_core::engine::{check_address_space, serve_one_command};
use cuzk_core::{Config, Engine, ProofRequest};
use cuzk_files::read_bounded;

use crate::failure::Failure;
use crate::logging::{self, LevelHandle};
use crate::output::shown;

/// The common input of all commands.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) config: Config,
    pub(crate) json: bool,
    /// The log's level, which a daemon can change.
    pub(crate) log_level: LevelHandle,
}

impl Context {
    /// Resolves the configuration and starts logging as it says.
    pub(crate) fn new(config: Option<&Path>, json: bool) -> Result<Self, Failure> {
        let config = match config {
            Some(path) => Config::load(path).map_err(cuzk_core::Error::from)?,
            None => Config::default(),
        };
        let log_level = logging::start(&config.logging);
        Ok(Self {
            config,
            json,
            log_level,
        })
    }

    /// Looks at the limit of the address space before any thread is started. Later, the first
    /// small allocation without addresses would end the process.
    ///
    /// # Errors
    /// A limit that is too low for the threads of this configuration.
    pub(crate) fn check_address_space(&self) -> Result<(), Failure> {
        Ok(check_address_space(&self.config)?)
    }
}

/// Returns an engine that ends with this command: nothing is done in its background, and its
/// jobs have no lines in the log.
pub(crate) fn for_one_command(engine: Engine) -> Engine {
    serve_one_command(&engine);
    engine
}

/// The largest request that is read. That of a PoRep of 32 GiB has 50 MB for 10 partitions. A
/// non-interactive one has 126.
pub(crate) const REQUEST_MAX_BYTES: u64 = 1 << 30;

/// The largest proof that is read. A proof of 16 partitions has 3 kB.
pub(crate) const PROOF_MAX_BYTES: u64 = 1 << 20;

/// Reads the request in `path`.
pub(crate) fn read_request(path: &Path) -> Result<ProofRequest, Failure> {
    let bytes = read(path, REQUEST_MAX_BYTES)?;
    ProofRequest::from_json(&bytes).map_err(|error| Failure::from(error).of(shown(path)))
}

/// Reads a file that the user named.
pub(crate) fn read(path: &Path, max_bytes: u64) -> Result<Vec<u8>, Failure> {
    read_bounded(path, max_bytes).map_err(|error| Failure::file(path, &error))
}
