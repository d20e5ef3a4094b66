//! The folder of what the daemon keeps between two starts.
//!
//! Not its content: the journal is the engine's. The invariant: nobody but the daemon's user
//! can look into a folder that is made here.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use cuzk_core::Config;

/// The name of the journal in the folder.
const JOURNAL: &str = "jobs.redb";

/// A folder that cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Neither the configuration nor the environment names a folder.
    #[error("server.state_dir: the environment names no folder; write the path of one")]
    Unnamed,
    /// The folder is not there and cannot be made.
    #[error(
        "server.state_dir: {}: {source}; write a folder that the daemon's user may make",
        path.display()
    )]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Returns a configuration that has a journal. Without `jobs.journal` it is a file in
/// `server.state_dir`. The folder is made if it is not there.
///
/// # Errors
///
/// No folder is named, or it cannot be made.
pub fn with_journal(mut config: Config) -> Result<Config, StateError> {
    if config.jobs.journal.is_some() {
        return Ok(config);
    }
    let path = config.server.state_dir.clone();
    let path = path.ok_or(StateError::Unnamed)?;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
    if let Err(source) = made {
        return Err(StateError::Unusable { path, source });
    }
    config.jobs.journal = Some(path.join(JOURNAL));
    Ok(config)
}

/// Returns a configuration whose journal is in a state folder that exists. There is none if the
/// folder would be made, or if the journal has a path of its own.
pub(crate) fn kept_already(config: &Config) -> Option<Config> {
    let folder = config.server.state_dir.as_deref();
    let folder = folder.filter(|folder| config.jobs.journal.is_none() && folder.is_dir())?;
    let mut config = config.clone();
    config.jobs.journal = Some(folder.join(JOURNAL));
    Some(config)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_journal_is_in_the_state_folder_unless_it_has_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.jobs.journal = None;
        config.server.state_dir = Some(folder.path().join("a/b"));
        let made = with_journal(config.clone()).unwrap();
        assert_eq!(made.jobs.journal, Some(folder.path().join("a/b/jobs.redb")));
        let mode = fs::metadata(folder.path().join("a/b"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(with_journal(made.clone()).unwrap(), made);
        fs::write(folder.path().join("file"), "").unwrap();
        config.server.state_dir = Some(folder.path().join("file/c"));
        let error = with_journal(config.clone()).unwrap_err().to_string();
        assert!(error.starts_with("server.state_dir: "), "{error}");
        config.server.state_dir = None;
        let error = with_journal(config).unwrap_err().to_string();
        assert!(error.contains("write the path of one"), "{error}");
    }
}
