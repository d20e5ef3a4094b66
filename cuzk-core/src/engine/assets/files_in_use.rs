//! The parameter files that each circuit is proved with.
//!
//! Not their content: that is [`cuzk_groth16::params`]'s. A mapped file stays whole when another
//! file is renamed over it, and only then. The invariant: files that took the place of
//! those in use are reported until they are used or refused.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cuzk_filecoin::CircuitId;
use cuzk_files::FileIdentity;

/// The identities of the parameters' file and of the key's.
type Pair = [FileIdentity; 2];

/// The files that each circuit is proved with.
#[derive(Debug, Default)]
pub(super) struct FilesInUse {
    files: Mutex<HashMap<CircuitId, Seen>>,
}

#[derive(Debug)]
struct Seen {
    used: Pair,
    /// Files that took their place and cannot be used.
    refused: Option<Pair>,
}

impl FilesInUse {
    /// Returns the files that took the place of a circuit's, and those whose place it was;
    /// none if the new ones are known to be of no use. It is asked before files are
    /// opened, so that a file that is replaced in between is found the next time. Files
    /// that are gone replace nothing.
    pub(super) fn others(&self, id: CircuitId, [params, vk]: [&Path; 2]) -> Option<(Pair, Pair)> {
        let now = [FileIdentity::of(params)?, FileIdentity::of(vk)?];
        let mut files = self.lock();
        let seen = files.entry(id).or_insert(Seen {
            used: now,
            refused: None,
        });
        let is_known = seen.used == now || seen.refused == Some(now);
        (!is_known).then_some((now, seen.used))
    }

    /// Notes that a circuit is proved with these files from now on. It is called after they
    /// were loaded, because a partition that finds nothing new takes what is loaded.
    pub(super) fn use_these(&self, id: CircuitId, used: Pair) {
        let refused = None;
        self.lock().insert(id, Seen { used, refused });
    }

    /// Notes that these files cannot be used.
    pub(super) fn refuse(&self, id: CircuitId, refused: Pair) {
        if let Some(seen) = self.lock().get_mut(&id) {
            seen.refused = Some(refused);
        }
    }

    // Every change is one step.
    fn lock(&self) -> MutexGuard<'_, HashMap<CircuitId, Seen>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use cuzk_filecoin::{ProofKind, SectorSize};

    #[test]
    fn a_file_is_told_from_what_takes_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let [params, vk, new] = ["params", "vk", "new"].map(|name| directory.path().join(name));
        let in_use = FilesInUse::default();
        let id = CircuitId {
            kind: ProofKind::Porep,
            sector_size: SectorSize::KiB2,
        };
        let were_others = || {
            let others = in_use.others(id, [&params, &vk]);
            others.map(|(now, _)| in_use.use_these(id, now)).is_some()
        };
        assert!(!were_others(), "there are none");
        fs::write(&params, "1").unwrap();
        fs::write(&vk, "1").unwrap();
        assert!(!were_others());
        assert!(!were_others());
        for path in [&params, &vk] {
            fs::write(&new, "1").unwrap();
            fs::rename(&new, path).unwrap();
            assert!(were_others());
            assert!(!were_others());
            fs::write(path, "12").unwrap();
            assert!(were_others());
        }
        fs::write(&vk, "123").unwrap();
        let others = || in_use.others(id, [&params, &vk]);
        let (now, used) = others().unwrap();
        assert!(now[1].is_same_file(&used[1]));
        in_use.refuse(id, now);
        assert!(others().is_none(), "they are known to be of no use");
        fs::write(&vk, "1234").unwrap();
        assert!(others().is_some());
        fs::remove_file(&vk).unwrap();
        assert!(!were_others(), "what is mapped is still there");
    }
}
