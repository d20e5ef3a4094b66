//! The thread that compares parameters with the network's digests, in the background.
//!
//! Not a stage: no partition waits for it. It uses half of one core at most, is paused for
//! critical work, and ends at its next checkpoint when the engine does. The invariants:
//! nothing is deleted or refused for a digest; a wrong digest is said once.

use std::io;
use std::path::Path;
use std::thread;
use std::time::Instant;

use cuzk_fetch::{Digests, HashedFile, noted_digest};
use cuzk_filecoin::{CircuitId, PARAMETERS_JSON};
use cuzk_memory::Checkpoint;

use crate::circuits::parameter_files;
use crate::engine::assets::DigestState;
use crate::engine::core::Core;
use crate::error::ErrorCode;
use crate::panics::catch_panic;
use crate::timeline::Stage;

/// The result of a comparison.
#[derive(Debug, PartialEq, Eq)]
enum Compared {
    Right,
    /// A file of this name has another digest.
    Wrong(String),
    NotListed,
}

/// Compares the parameters of the circuits that are asked for, until the queue is closed.
pub(super) fn run(core: &Core) {
    let checks = &core.assets.digests;
    while let Some(id) = checks.next() {
        let trace = core.timeline.background();
        let compared = catch_panic("digests", || {
            Ok(trace.time(Stage::Digests, || compare_of(core, id)))
        });
        let state = match compared {
            Ok(Ok(compared)) => said(core, id, &compared),
            Ok(Err(_)) if checks.is_closed() => return,
            Ok(Err(error)) => {
                tracing::warn!(
                    circuit = %id, code = %ErrorCode::File, %error,
                    "the digests could not be compared"
                );
                DigestState::Unreadable
            }
            Err(error) => {
                tracing::warn!(
                    circuit = %id, code = %ErrorCode::of(&error), %error,
                    "the digests could not be compared"
                );
                DigestState::Unreadable
            }
        };
        checks.found(id, state);
    }
}

/// Ends the thread at its next checkpoint.
pub(super) fn stop(core: &Core) {
    core.assets.digests.close();
    core.dispatch.pause.wake();
}

/// Says what was found, and returns it as a state.
fn said(core: &Core, id: CircuitId, compared: &Compared) -> DigestState {
    match compared {
        Compared::Right => {
            tracing::info!(circuit = %id, "the parameters have the network's digests");
            DigestState::Right
        }
        Compared::NotListed => DigestState::NotListed,
        Compared::Wrong(name) => {
            let path = core.config.srs.param_cache.join(name);
            tracing::error!(
                circuit = %id,
                path = %path.display(),
                code = %ErrorCode::ParametersUnusable,
                "the parameters do not have the network's digest, so proofs may be rejected; \
                 check them with `cuzk params verify`, and fetch them again with \
                 `cuzk params fetch`"
            );
            DigestState::Wrong
        }
    }
}

fn compare_of(core: &Core, id: CircuitId) -> io::Result<Compared> {
    let files = parameter_files(id).map_err(io::Error::other)?;
    let list = Digests::parse(PARAMETERS_JSON).map_err(io::Error::other)?;
    let checkpoint = Checkpoint::new(core.assets.digests.cancellation())
        .paused_by(&core.dispatch.pause)
        .counted_by(&core.dispatch.heartbeat);
    let mut since = Instant::now();
    let goes_on = || {
        // Half of the time belongs to others.
        thread::sleep(since.elapsed());
        let goes_on = checkpoint.check().is_ok();
        since = Instant::now();
        goes_on
    };
    let folder = &core.config.srs.param_cache;
    compare(folder, [&files.vk, &files.params], &list, goes_on)
}

/// Compares files of a folder with a list. A file that was hashed before, and was not
/// written to since, is not read. `goes_on` is asked after each piece of a file.
///
/// # Errors
/// An error of the file system; [`io::ErrorKind::Interrupted`] if `goes_on` returned false.
fn compare(
    folder: &Path,
    names: [&String; 2],
    list: &Digests,
    mut goes_on: impl FnMut() -> bool,
) -> io::Result<Compared> {
    for name in names {
        let Some(listed) = list.get(name) else {
            return Ok(Compared::NotListed);
        };
        let digest = match noted_digest(folder, name) {
            Some(noted) => noted,
            None => {
                let hashed = HashedFile::new(folder, name, |_| goes_on())?;
                let digest = hashed.digest();
                // A folder that cannot be written to keeps no note.
                if let Err(error) = hashed.note() {
                    tracing::debug!(name, %error, "the digest is not noted");
                }
                digest
            }
        };
        if digest != listed.digest {
            return Ok(Compared::Wrong(name.clone()));
        }
    }
    Ok(Compared::Right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_fetch::Digest;

    fn list(bytes: &[u8]) -> Digests {
        let digest = Digest::of_bytes(bytes);
        let entry = |name| {
            format!(r#""{name}": {{"cid": "Qm", "digest": "{digest}", "sector_size": 2048}}"#)
        };
        Digests::parse(&format!("{{{}, {}}}", entry("a.vk"), entry("a.params"))).unwrap()
    }

    #[test]
    fn files_are_right_wrong_or_not_listed_and_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let [vk, params, other] = ["a.vk", "a.params", "b.params"].map(str::to_owned);
        let list = list(b"good");
        let mut reads = 0;
        let mut compared = |names| {
            compare(folder, names, &list, || {
                reads += 1;
                true
            })
        };
        assert!(compared([&vk, &params]).is_err(), "no file is there");
        std::fs::write(folder.join(&vk), "good").unwrap();
        std::fs::write(folder.join(&params), "wrong").unwrap();
        let wrong = Compared::Wrong(params.clone());
        assert_eq!(compared([&vk, &params]).unwrap(), wrong);
        std::fs::write(folder.join(&params), "good").unwrap();
        assert_eq!(compared([&vk, &params]).unwrap(), Compared::Right);
        assert_eq!(compared([&vk, &params]).unwrap(), Compared::Right);
        assert_eq!(compared([&vk, &other]).unwrap(), Compared::NotListed);
        // Of three readings, none for the key again.
        assert_eq!(reads, 3);
    }

    #[test]
    fn a_file_that_is_replaced_while_it_is_read_is_neither_right_nor_noted() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let name = "a.vk".to_owned();
        std::fs::write(folder.join(&name), "good").unwrap();
        let replaced = compare(folder, [&name, &name], &list(b"good"), || {
            std::fs::write(folder.join("new"), "evil").unwrap();
            std::fs::rename(folder.join("new"), folder.join(&name)).unwrap();
            true
        });
        let problem = replaced.unwrap_err().to_string();
        assert!(problem.contains("while it was hashed"), "{problem}");
        assert_eq!(noted_digest(folder, &name), None);
    }

    #[test]
    fn the_comparison_stops_where_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let name = "a.vk".to_owned();
        std::fs::write(folder.path().join(&name), "good").unwrap();
        let stopped = compare(folder.path(), [&name, &name], &list(b"good"), || false);
        assert_eq!(stopped.unwrap_err().kind(), io::ErrorKind::Interrupted);
    }
}
