//! Parameter files that are replaced on disk while the engine runs.
//!
//! Not what is in them: that is [`crate::params`]'s. What is mapped stays whole when
//! another file is renamed over it, and only then. The invariant: a partition that
//! begins after that is proved, and verified, with the new files.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::shared::Shared;
use crate::circuit::Circuit;
use crate::file_identity::FileIdentity;
use crate::kinds::CircuitId;
use crate::params::ParameterFiles;

/// By which files each circuit is proved.
#[derive(Debug, Default)]
pub(super) struct InUse {
    files: Mutex<HashMap<CircuitId, [FileIdentity; 2]>>,
}

impl InUse {
    /// Whether a circuit had other files than these. To be asked before they are
    /// opened, so that what is replaced in between is found the next time. Files
    /// that are gone replace nothing.
    fn were_others(&self, id: CircuitId, [params, vk]: [&Path; 2]) -> bool {
        let (Some(params), Some(vk)) = (FileIdentity::of(params), FileIdentity::of(vk)) else {
            return false;
        };
        let now = [params, vk];
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.insert(id, now).is_some_and(|before| before != now)
    }
}

impl Shared {
    /// Lets go of a circuit's parameters if their files were replaced.
    pub(super) fn let_go_of_replaced(&self, circuit: &Circuit, files: &ParameterFiles) {
        let id = circuit.id();
        let paths = [self.params.params_path(files), self.params.vk_path(files)];
        if !self.in_use.were_others(id, [&paths[0], &paths[1]]) {
            return;
        }
        tracing::warn!(
            circuit = %id,
            path = %paths[0].display(),
            "the parameters were replaced; partitions that begin now are proved with the new ones"
        );
        self.params.evict(files);
        for (_, _, station) in self.stations.all() {
            station.device.backend.evict(circuit);
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
        let were_others = || in_use.were_others(id, [&params, &vk]);
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
        fs::remove_file(&vk).unwrap();
        assert!(!were_others(), "what is mapped is still there");
    }
}
