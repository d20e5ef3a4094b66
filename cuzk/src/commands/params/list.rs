//! `cuzk params list`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use cuzk_core::circuits;
use cuzk_fetch::{Digest, HashedFile, noted_digest};
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize, srs_file_name};
use indicatif::HumanBytes;
use serde::Serialize;

use super::check_cache;
use super::state::{Known, State, state};
use crate::commands::Context;
use crate::failure::Failure;
use crate::{output, progress};

#[derive(Debug, Args)]
pub(crate) struct ParamsList {
    /// Hash each file now.
    #[arg(long)]
    pub(crate) check: bool,
    /// A list of digests in the form of parameters.json, in place of the networks' list.
    #[arg(long, value_name = "FILE")]
    pub(crate) digests: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Line {
    name: String,
    /// The circuit that it is for, or "aggregation".
    circuit: Option<String>,
    bytes: u64,
    state: State,
}

#[derive(Debug, Serialize)]
struct ListReport {
    folder: String,
    files: Vec<Line>,
}

pub(super) fn run(context: &Context, args: &ParamsList) -> Result<(), Failure> {
    let digests = super::fetch::digests(args.digests.as_ref())?;
    let folder = &context.config.srs.param_cache;
    let circuits = circuits_of_names()?;
    let mut files = Vec::new();
    for name in names(folder)? {
        let path = folder.join(&name);
        let digest = if args.check {
            Some(check(folder, &name)?)
        } else {
            noted_digest(folder, &name)
        };
        let metadata = path.metadata();
        let metadata = metadata.map_err(|error| Failure::file(&path, &error))?;
        let circuit = circuits.get(&name);
        let known = Known {
            digest,
            listed: digests.get(&name),
            key: circuit.and_then(|(_, key)| digests.get(key)),
        };
        files.push(Line {
            circuit: match circuit {
                None if name == srs_file_name() => Some("aggregation".to_owned()),
                circuit => circuit.map(|(id, _)| id.to_string()),
            },
            bytes: metadata.len(),
            state: state(&path, known),
            name,
        });
    }
    let report = ListReport {
        folder: output::shown(folder),
        files,
    };
    output::print(context.json, &report, text)
}

/// Returns the names of parameters, keys and SRS in a folder, in their order. A folder that does
/// not exist has none.
fn names(folder: &Path) -> Result<Vec<String>, Failure> {
    check_cache(folder)?;
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::file(folder, &error)),
    };
    let names = entries.flatten().filter(|entry| entry.path().is_file());
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let extensions = [".params", ".vk", ".srs"];
    let is_of_kind = |name: &String| extensions.iter().any(|end| name.ends_with(end));
    let mut names: Vec<_> = names.filter(is_of_kind).collect();
    names.sort();
    Ok(names)
}

/// Returns the circuit of each name that a proof of any kind and size uses, with the name of
/// its verifying key.
fn circuits_of_names() -> Result<BTreeMap<String, (CircuitId, String)>, Failure> {
    let mut circuits_of_names = BTreeMap::new();
    for kind in ProofKind::ALL {
        for sector_size in SectorSize::ALL {
            let id = CircuitId { kind, sector_size };
            let files = circuits::parameter_files(id)?;
            circuits_of_names.insert(files.params, (id, files.vk.clone()));
            circuits_of_names.insert(files.vk.clone(), (id, files.vk));
        }
    }
    Ok(circuits_of_names)
}

/// Hashes a file and notes its digest. A folder that cannot be written to keeps no note.
fn check(folder: &Path, name: &str) -> Result<Digest, Failure> {
    let path = folder.join(name);
    let bar = progress::bytes_bar("hashing");
    bar.set_length(path.metadata().map_or(0, |metadata| metadata.len()));
    let hashed = HashedFile::new(folder, name, |bytes| {
        bar.inc(bytes);
        true
    });
    bar.finish_and_clear();
    let hashed = hashed.map_err(|error| Failure::file(&path, &error))?;
    let digest = hashed.digest();
    if let Err(error) = hashed.note() {
        tracing::warn!(
            "{}: the digest cannot be noted: {error}",
            output::shown(folder)
        );
    }
    Ok(digest)
}

fn text(report: &ListReport) -> String {
    let mut lines = vec![report.folder.clone()];
    if report.files.is_empty() {
        lines.push("no parameters; fetch them with `cuzk params fetch`".to_owned());
    }
    for file in &report.files {
        let circuit = file.circuit.as_deref().unwrap_or("no circuit of cuzk");
        let bytes = HumanBytes(file.bytes).to_string();
        let state = file.state.as_str();
        lines.push(format!(
            "{state:<15}  {circuit:<20}  {bytes:>10}  {}",
            output::shown(Path::new(&file.name))
        ));
    }
    let mut explained: Vec<_> = report.files.iter().map(|file| file.state).collect();
    explained.sort();
    explained.dedup();
    let explanations = explained.into_iter().filter_map(State::explanation);
    lines.extend(explanations.map(str::to_owned));
    lines.join("\n")
}
