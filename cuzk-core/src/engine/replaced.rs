//! Parameter files that are replaced on disk while the engine runs.
//!
//! Not what is in them: that is [`crate::params`]'s. What is mapped stays whole when
//! another file is renamed over it, and only then. The invariant: a partition that
//! begins after that is proved, and verified, with the new files, unless they cannot be
//! used: then with the old ones.

use std::collections::HashMap;
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::shared::Shared;
use super::stations::Station;
use crate::circuit::Circuit;
use crate::file_identity::FileIdentity;
use crate::kinds::CircuitId;
use crate::params::{LoadedParams, ParameterFiles, QueryLengths};

/// The parameters' file and the key's.
type Pair = [FileIdentity; 2];

/// By which files each circuit is proved.
#[derive(Debug, Default)]
pub(super) struct InUse {
    files: Mutex<HashMap<CircuitId, Seen>>,
}

#[derive(Debug)]
struct Seen {
    used: Pair,
    /// Others that took their place, and cannot be used.
    refused: Option<Pair>,
}

impl InUse {
    /// The files that took the place of a circuit's, with those, unless it is known that
    /// they are of no use. To be asked before they are opened, so that what is replaced
    /// in between is found the next time. Files that are gone replace nothing.
    fn others(&self, id: CircuitId, [params, vk]: [&Path; 2]) -> Option<(Pair, Pair)> {
        let now = [FileIdentity::of(params)?, FileIdentity::of(vk)?];
        let mut files = self.lock();
        let seen = files.entry(id).or_insert(Seen {
            used: now,
            refused: None,
        });
        let is_known = seen.used == now || seen.refused == Some(now);
        (!is_known).then_some((now, seen.used))
    }

    /// From now on a circuit has these. Not before what is loaded is of them: who finds
    /// nothing new takes what is loaded.
    fn use_these(&self, id: CircuitId, used: Pair) {
        let refused = None;
        self.lock().insert(id, Seen { used, refused });
    }

    /// These are of no use.
    fn refuse(&self, id: CircuitId, refused: Pair) {
        if let Some(seen) = self.lock().get_mut(&id) {
            seen.refused = Some(refused);
        }
    }

    // Every change is one step.
    fn lock(&self) -> MutexGuard<'_, HashMap<CircuitId, Seen>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Goes over to a circuit's new parameters if their files were replaced, by such as
    /// can be used: a pair is replaced one file after the other, and until the second is
    /// there the old ones, which are mapped, go on.
    pub(super) fn follow_replaced(
        &self,
        circuit: &Circuit,
        files: &ParameterFiles,
        lengths: &QueryLengths,
    ) {
        let id = circuit.id();
        let paths = [self.params.params_path(files), self.params.vk_path(files)];
        let Some((now, used)) = self.in_use.others(id, [&paths[0], &paths[1]]) else {
            return;
        };
        let path = paths[0].display();
        // A mapped file that was written to is not what was opened.
        let is_whole = !now[0].is_same_file(&used[0]) || now[0] == used[0];
        let before = self.params.loaded(files);
        if is_whole && before.is_some() {
            if let Err(error) = self.params.reload(files, lengths) {
                self.in_use.refuse(id, now);
                tracing::warn!(
                    circuit = %id, %path, %error,
                    "the parameters were replaced by such as cannot be used; partitions are \
                     proved with the old ones until they are replaced again"
                );
                return;
            }
        } else {
            self.params.evict(files);
        }
        self.in_use.use_these(id, now);
        tracing::warn!(
            circuit = %id, %path,
            "the parameters were replaced; partitions that begin now are proved with the new ones"
        );
        if let Some(before) = before {
            for station in self.stations.devices() {
                station.device.backend.evict_params(before.mapped());
            }
        }
    }

    /// To be called when a device has proved with these parameters: if others have taken
    /// their place since that partition began, what the device made for it is of no
    /// further use.
    pub(super) fn let_go_if_replaced(&self, here: &Station, id: CircuitId, params: &LoadedParams) {
        let files = id.parameter_files();
        let loaded = files.ok().and_then(|files| self.params.loaded(&files));
        if !loaded.is_some_and(|loaded| ptr::eq(&*loaded, params)) {
            here.device.backend.evict_params(params.mapped());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::kinds::{ProofKind, SectorSize};

    #[test]
    fn a_file_is_told_from_what_takes_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let [params, vk, new] = ["params", "vk", "new"].map(|name| directory.path().join(name));
        let in_use = InUse::default();
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
