//! Configuration: strict TOML in, validated values out.
//!
//! Data flows one way: text → [`FileConfig`] → [`Config`].
//!
//! * `file`: the text as the operator wrote it, and `keys`, the keys that there are.
//! * `host`: the machine and its environment, with `address_space` and `meminfo`.
//! * `resolve`: from both to the configuration, section by section; `values` checks single
//!   values, and `problem` is a value that failed.
//! * `resolved`: the configuration that the engine sees, `server` that of the daemon,
//!   `cluster` that of a machine among others, and `address` where a daemon is. `printed` is
//!   the way back to a file.
//! * `import`: the way from a file of the existing daemon to one of ours.
//! * `places`: the files and folders that a configuration names, on this machine.
//!
//! Nothing here watches a file or changes at run time. The invariants: an unknown key, a
//! value out of range or a value of the wrong type never resolves. All problems of a file
//! are reported at once.

mod address;
mod address_space;
mod cluster;
mod file;
mod host;
mod import;
mod keys;
mod meminfo;
mod places;
mod printed;
mod problem;
mod resolve;
mod resolved;
mod server;
mod size;
mod values;

use std::path::Path;

use cuzk_files::read_bounded;
use serde::{Serialize, Serializer};

pub use address::{Address, AddressError};
pub use cluster::{Cluster, ClusterServer, ClusterServerError, REPLICAS_MAX};
pub use file::{
    ClusterSection, CpuSection, DevicesText, Field, FileConfig, GpusSection, JobsSection,
    LoggingSection, MemorySection, PipelineSection, ServerSection, SizeText, SrsSection,
    SynthesisSection,
};
pub(crate) use host::device_queues_problem;
pub use host::{Host, PARAM_CACHE_VARIABLE, address_space_problem, available_memory_bytes};
pub use import::{Imported, LeftOut, import};
pub use keys::SECTIONS;
pub use places::{PlaceProblem, place_problems};
pub use problem::{ConfigError, Problem, ProblemKind};
pub use resolve::{PARAM_CACHE_DEFAULT, TOTAL_BUDGET_MIN_BYTES};
pub use resolved::{
    Config, Cpu, Devices, Gpus, Jobs, LogFormat, LogLevel, Logging, Memory, Pipeline, Srs,
    Synthesis,
};
pub use server::{REQUEST_MEMORY_MIN_BYTES, Server};
pub use supraseal_sys::device::BG2;
pub use values::{COUNT_MAX, SECONDS_MAX, SIZE_MAX_BYTES};

use resolve::resolve;

/// No configuration is as large.
const FILE_MAX_BYTES: u64 = 1 << 20;

impl Config {
    /// Reads a file, on this machine and in its environment.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Read`] and [`ConfigError::NotUtf8`] for the file,
    /// [`ConfigError::Invalid`] with every problem in it for its text.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let read = |source| ConfigError::Read {
            path: path.to_owned(),
            source,
        };
        let bytes = read_bounded(path, FILE_MAX_BYTES).map_err(read)?;
        let text = String::from_utf8(bytes).map_err(|error| ConfigError::NotUtf8 {
            path: path.to_owned(),
            line: problem::line_of(error.as_bytes(), error.utf8_error().valid_up_to()),
        })?;
        Self::parse(&text, &path.display().to_string(), &Host::detect())
    }

    /// Resolves a file's text for a machine. `origin` names the text in errors.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Invalid`] with every problem in the text.
    pub fn parse(text: &str, origin: &str, host: &Host) -> Result<Self, ConfigError> {
        let mut findings = Vec::new();
        let file = file::parse(text, &mut findings);
        let config = resolve(&file, host, &mut findings);
        if findings.is_empty() {
            return Ok(config);
        }
        let problems = problem::locate(text, findings);
        Err(ConfigError::Invalid {
            origin: origin.to_owned(),
            problems,
        })
    }

    /// The built-in configuration for a machine: what an empty file resolves to.
    #[must_use]
    pub fn default_for(host: &Host) -> Self {
        resolve(&FileConfig::default(), host, &mut Vec::new())
    }

    /// The effective configuration as TOML, every key written. Reading it again
    /// gives the same configuration.
    #[must_use]
    pub fn to_toml(&self) -> String {
        #[expect(
            clippy::expect_used,
            reason = "numbers, booleans and texts are all TOML"
        )]
        toml::to_string(self).expect("a configuration is TOML")
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        FileConfig::from(self).serialize(serializer)
    }
}

impl Default for Config {
    /// The built-in configuration on this machine and in its environment.
    fn default() -> Self {
        Self::default_for(&Host::detect())
    }
}
