//! The files and folders that a configuration names, as they are on this machine.
//!
//! Nothing here is changed or created, and no address is bound. The invariant: a place that
//! is found wrong here would keep an engine or a daemon from starting, or from proving.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use cuzk_journal::{folder_problem, other_file_problem};

use super::resolved::Config;

/// A place that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("[{section}] {key}: {problem}")]
pub struct PlaceProblem {
    /// The section of the key that names the place.
    pub section: &'static str,
    /// The key that names the place.
    pub key: &'static str,
    /// The problem with its place, and the remedy.
    pub problem: String,
}

/// Returns every place of the configuration that cannot be used on this machine now, in
/// the order of the file's sections.
#[must_use]
pub fn place_problems(config: &Config) -> Vec<PlaceProblem> {
    let server = &config.server;
    let cluster = &config.cluster;
    let file = |path: &Option<PathBuf>| path.as_deref().and_then(of_file);
    let journal = config.jobs.journal.as_deref().and_then(of_journal);
    let state_dir = server.state_dir.as_deref().and_then(of_folder);
    [
        ("srs", "param_cache", of_folder(&config.srs.param_cache)),
        ("jobs", "journal", journal),
        ("server", "tls_certificate", file(&server.tls_certificate)),
        ("server", "tls_key", file(&server.tls_key)),
        ("server", "client_ca", file(&server.client_ca)),
        ("server", "tokens", file(&server.tokens)),
        ("server", "state_dir", state_dir),
        ("cluster", "credentials", file(&cluster.credentials)),
        ("cluster", "server_ca", file(&cluster.server_ca)),
        (
            "cluster",
            "client_certificate",
            file(&cluster.client_certificate),
        ),
        ("cluster", "client_key", file(&cluster.client_key)),
    ]
    .into_iter()
    .filter_map(|(section, key, problem)| {
        Some(PlaceProblem {
            section,
            key,
            problem: problem?,
        })
    })
    .collect()
}

/// Returns the problem of a folder that is made when it is needed.
fn of_folder(path: &Path) -> Option<String> {
    let nearest = path.ancestors().find(|path| path.exists())?;
    (!nearest.is_dir()).then(|| {
        let place = match path == nearest {
            true => String::new(),
            false => format!("{}: ", path.display()),
        };
        let nearest = nearest.display();
        format!("{place}{nearest} is a file, not a folder; name a folder, or move the file away")
    })
}

/// Returns the problem of the journal's file, which is made in a folder that must be there.
fn of_journal(path: &Path) -> Option<String> {
    let shown = path.display();
    if path.is_dir() {
        return Some(format!("{shown} is a folder; name a file in it"));
    }
    let problem = folder_problem(path).or_else(|| other_file_problem(path))?;
    Some(format!("{shown}: {problem}"))
}

/// Returns the problem of a file that must be there.
fn of_file(path: &Path) -> Option<String> {
    let opened = match path.is_dir() {
        true => Err(io::ErrorKind::IsADirectory.into()),
        false => File::open(path),
    };
    let error = opened.err()?;
    let path = path.display();
    Some(format!("{path}: {error}; name a file that can be read"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::host::Host;
    use super::*;

    #[test]
    fn each_place_that_cannot_be_used_is_told_by_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "").unwrap();
        let good = Config {
            srs: super::super::Srs {
                param_cache: at("cache"),
                ..Config::default_for(&Host::detect()).srs
            },
            ..Config::default_for(&Host::detect())
        };
        let with = |change: fn(&mut Config, PathBuf), name: &str| {
            let mut config = good.clone();
            config.server.state_dir = Some(at("state/cuzk"));
            change(&mut config, at(name));
            let problems = place_problems(&config);
            problems.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let journal = |config: &mut Config, path| config.jobs.journal = Some(path);
        let cache = |config: &mut Config, path| config.srs.param_cache = path;
        let state = |config: &mut Config, path| config.server.state_dir = Some(path);
        let token = |config: &mut Config, path| config.server.tokens = Some(path);
        let nkey = |config: &mut Config, path| config.cluster.credentials = Some(path);
        let authority = |config: &mut Config, path| config.cluster.server_ca = Some(path);
        let shown = |config: &mut Config, path| config.cluster.client_certificate = Some(path);
        let key = |config: &mut Config, path| config.cluster.client_key = Some(path);
        type Change = fn(&mut Config, PathBuf);
        let cases: &[(Change, &str, Option<&str>)] = &[
            (journal, "jobs", None),
            (journal, "file", Some("no journal")),
            (journal, "", Some("[jobs] journal: ")),
            (journal, "no/jobs", Some("no does not exist; make it")),
            (journal, "file/jobs", Some("file is not a folder")),
            (cache, "deep/new/cache", None),
            (cache, "file", Some("file is a file, not a folder")),
            (state, "file/cuzk", Some("[server] state_dir: ")),
            (token, "file", None),
            (token, "none", Some("[server] tokens: ")),
            (token, "", Some("name a file that can be read")),
            (nkey, "file", None),
            (nkey, "none", Some("[cluster] credentials: ")),
            (authority, "none", Some("[cluster] server_ca: ")),
            (shown, "none", Some("[cluster] client_certificate: ")),
            (key, "none", Some("[cluster] client_key: ")),
        ];
        for (change, name, expected) in cases {
            let told = with(*change, name);
            assert_eq!(
                told.len(),
                usize::from(expected.is_some()),
                "{name}: {told:?}"
            );
            if let Some(expected) = expected {
                assert!(told[0].contains(expected), "{told:?}");
            }
        }
        assert!(!at("cache").exists(), "nothing is created");
    }
}
