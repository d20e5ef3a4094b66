//! The parameters of the kinds that are to be proved: are they there, and are they right.
//!
//! No file is hashed here: `cuzk params list --check` does that, and notes the digest.

use std::path::Path;

use cuzk_core::{Config, circuits};
use cuzk_fetch::{Digests, noted_digest};
use cuzk_filecoin::{CircuitId, PARAMETERS_JSON, ProofKind, SectorSize};
use cuzk_groth16::params::{MappedParams, ParamCache, ParameterFiles};
use indicatif::HumanBytes;

use super::Doctor;
use super::finding::Finding;
use crate::commands::params::{Known, State, state};

const TOPIC: &str = "parameters";

/// Returns the circuits to look at: those that are asked for, else those of which the cache
/// has parameters.
pub(super) fn kinds(config: &Config, args: &Doctor) -> Vec<CircuitId> {
    let of_size = |sector_size: SectorSize, kinds: &[ProofKind]| {
        let ids = kinds.iter().map(|&kind| CircuitId { kind, sector_size });
        ids.collect::<Vec<_>>()
    };
    match (args.sector_size, &args.kind[..]) {
        (None, []) => {}
        (Some(size), []) => return of_size(size, &ProofKind::ALL),
        (size, named) => return of_size(size.unwrap_or(SectorSize::GiB32), named),
    }
    let cache = ParamCache::new(&config.srs.param_cache);
    let all = SectorSize::ALL.map(|size| of_size(size, &ProofKind::ALL));
    let is_there = |id: &CircuitId| {
        let files = circuits::parameter_files(*id);
        files.is_ok_and(|files| cache.params_path(&files).is_file())
    };
    all.into_iter().flatten().filter(is_there).collect()
}

pub(super) fn examine(config: &Config, ids: &[CircuitId]) -> Vec<Finding> {
    if ids.is_empty() {
        let text = format!("none in {}", config.srs.param_cache.display());
        let advice = "fetch the network's with `cuzk params fetch`, or make test parameters with \
                      `cuzk params generate`; --kind looks for certain ones";
        return vec![Finding::warning(TOPIC, text, advice)];
    }
    let digests = Digests::parse(PARAMETERS_JSON).ok();
    let each = ids
        .iter()
        .map(|id| of_circuit(config, *id, digests.as_ref()));
    each.collect()
}

fn of_circuit(config: &Config, id: CircuitId, digests: Option<&Digests>) -> Finding {
    let cache = ParamCache::new(&config.srs.param_cache);
    let files = match circuits::parameter_files(id) {
        Ok(files) => files,
        Err(error) => return Finding::error(TOPIC, format!("{id}: {error}"), "report it"),
    };
    let path = cache.params_path(&files);
    let opened = MappedParams::open(&path);
    let checked = opened.and_then(|params| params.check_key(&cache.vk_path(&files)));
    if let Err(error) = checked {
        let advice = format!(
            "`cuzk params fetch --kind {} --sector-size {}` brings them",
            id.kind, id.sector_size
        );
        return Finding::error(TOPIC, format!("{id}: {error}"), advice);
    }
    let bytes = path.metadata().map_or(0, |metadata| metadata.len());
    judge(id, &path, bytes, state_of(config, &files, digests))
}

/// Returns the finding about parameters that can be used.
fn judge(id: CircuitId, path: &Path, bytes: u64, state: State) -> Finding {
    let bytes = HumanBytes(bytes);
    let path = path.display();
    match state {
        State::Verified => Finding::ok(TOPIC, format!("{id}: {bytes}, verified")),
        State::NotListed => {
            let text = format!("{id}: {bytes}, of no network");
            let advice =
                "they are test parameters, or those of another network: good for tests only";
            Finding::warning(TOPIC, text, advice)
        }
        State::NotVerified => {
            let text = format!("{id}: {bytes}, never compared with the network's digest");
            Finding::warning(TOPIC, text, "`cuzk params list --check` compares them")
        }
        State::WrongDigest => {
            let text = format!("{id}: {bytes}, not the network's: the digest is another");
            Finding::error(TOPIC, text, format!("delete {path} and fetch it again"))
        }
        State::TestParameters | State::OfAnotherKey => {
            let text = match state {
                State::TestParameters => "insecure test parameters, which cuzk made",
                _ => "of no network: the key is another than the network's",
            };
            let text = format!("{id}: {bytes}, {text}");
            if id.sector_size.is_for_networks() {
                let advice = format!(
                    "the network rejects their proofs; move {path} and its key away, and fetch \
                     the network's with `cuzk params fetch`"
                );
                return Finding::error(TOPIC, text, advice);
            }
            Finding::warning(TOPIC, text, "they are good for tests only")
        }
    }
}

/// Returns the worst state of the parameters and the key.
fn state_of(config: &Config, files: &ParameterFiles, digests: Option<&Digests>) -> State {
    let folder = &config.srs.param_cache;
    let entry = |name: &String| digests.and_then(|digests| digests.get(name));
    let states = [&files.params, &files.vk].map(|name| {
        let known = Known {
            digest: noted_digest(folder, name),
            listed: entry(name),
            key: entry(&files.vk),
        };
        state(&folder.join(name), known)
    });
    let worst = [
        State::WrongDigest,
        State::OfAnotherKey,
        State::TestParameters,
        State::NotListed,
        State::NotVerified,
    ];
    let is_one = |state: &State| states.contains(state);
    worst.into_iter().find(is_one).unwrap_or(State::Verified)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level::{self, Error, Ok, Warning};
    use super::*;

    #[test]
    fn each_state_of_the_parameters_has_its_line() {
        let level = |sector_size, state| -> Level {
            let kind = ProofKind::Porep;
            let id = CircuitId { kind, sector_size };
            judge(id, Path::new("p"), 7, state).level
        };
        let (test, real) = (SectorSize::KiB2, SectorSize::GiB32);
        for (size, state, expected) in [
            (real, State::Verified, Ok),
            (real, State::NotVerified, Warning),
            (real, State::WrongDigest, Error),
            (real, State::NotListed, Warning),
            (real, State::TestParameters, Error),
            (real, State::OfAnotherKey, Error),
            (test, State::Verified, Ok),
            (test, State::NotVerified, Warning),
            // The key is the network's, so they are no test parameters.
            (test, State::WrongDigest, Error),
            // Parameters that were made here are no error.
            (test, State::TestParameters, Warning),
            (test, State::OfAnotherKey, Warning),
        ] {
            assert_eq!(level(size, state), expected, "{size}");
        }
    }
}
