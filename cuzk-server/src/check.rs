//! The reasons for which a daemon would not start, or not reach its cluster, found before its start.
//!
//! Not the values of single keys, and not whether files are there: `cuzk-core` looks at both before.
//! The invariant: nothing is made or changed, and no client can connect. An address that a daemon
//! has now is no reason, because the file may be that daemon's.

use cuzk_core::Config;
use cuzk_core::config::place_problems;

use crate::access::Access;
use crate::cluster::settings;
use crate::listen::check as listen;
use crate::state;

/// Returns each reason with its key, and what to do.
#[must_use]
pub fn problems(config: &Config) -> Vec<String> {
    let server = &config.server;
    let mut problems: Vec<_> = listen::problems(server)
        .iter()
        .map(ToString::to_string)
        .collect();
    problems.extend(Access::load(server).err().map(|error| error.to_string()));
    let memory = config.beside_requests();
    problems.extend(memory.err().map(|error| error.to_string()));
    if let Some(config) = state::kept_already(config) {
        problems.extend(place_problems(&config).iter().map(ToString::to_string));
    }
    problems.extend(settings::problems(&config.cluster));
    problems
}
