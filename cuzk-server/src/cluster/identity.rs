//! The circuits that this machine can prove, as other machines know them.
//!
//! Not the circuits themselves. The invariant: equal fingerprints mean equal constraints, equal
//! verifying keys and one format of partitions. So machines of other versions or with other
//! parameters never share work.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cuzk_cluster::name::Name;
use cuzk_cluster::subject::{Circuit, Fingerprint};
use cuzk_core::ProofKind;
use cuzk_core::circuits::{cached, parameter_files};
use cuzk_filecoin::{CircuitId, PARTITION_FORMAT, SectorSize};
use cuzk_files::{FileIdentity, read_bounded};

/// The longest verifying key. That of a WindowPoSt of 32 GiB has 3 MB.
const KEY_BYTES_MAX: u64 = 64 << 20;

/// The circuits of a parameter cache. Their identities are made once, and made again when the
/// parameters were replaced.
#[derive(Debug)]
pub struct Identities {
    param_cache: PathBuf,
    known: Mutex<HashMap<CircuitId, Known>>,
    /// Held while an identity is made, so that no circuit is compiled twice at a time.
    making: Mutex<()>,
}

#[derive(Clone, Debug)]
struct Known {
    files: Files,
    circuit: Circuit,
}

/// The files of a circuit's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Files {
    params: FileIdentity,
    key: FileIdentity,
}

/// A circuit whose identity cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// There are no parameters.
    #[error(
        "{circuit}: its parameters are not in {folder}; fetch them with `cuzk params fetch`",
        folder = .folder.display()
    )]
    Missing {
        /// The circuit.
        circuit: CircuitId,
        /// The parameter cache.
        folder: PathBuf,
    },
    /// The circuit cannot be compiled.
    #[error(transparent)]
    Circuit(#[from] cuzk_core::Error),
    /// The verifying key cannot be read.
    #[error("{path}: {source}; fetch it again with `cuzk params fetch`", path = .path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl Identities {
    /// Returns the circuits of a parameter cache. Nothing is read yet.
    #[must_use]
    pub fn new(param_cache: &Path) -> Self {
        Self {
            param_cache: param_cache.to_owned(),
            known: Mutex::default(),
            making: Mutex::default(),
        }
    }

    /// Returns the circuits whose parameters are there, those of small sectors first.
    #[must_use]
    pub fn present(&self) -> Vec<CircuitId> {
        let all = SectorSize::ALL.into_iter().flat_map(|sector_size| {
            let of_size = move |kind| CircuitId { kind, sector_size };
            ProofKind::ALL.into_iter().map(of_size)
        });
        all.filter(|id| self.files(*id).is_some()).collect()
    }

    /// Returns the identity of a circuit. Reads the compiled circuit and the verifying key the
    /// first time. A circuit that was never compiled is compiled, which takes minutes at 32 GiB.
    ///
    /// # Errors
    /// Any [`IdentityError`].
    pub fn of(&self, id: CircuitId) -> Result<Circuit, IdentityError> {
        if let Some(known) = self.known(id) {
            return Ok(known);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = self.known(id) {
            return Ok(known);
        }
        let files = self.files(id).ok_or_else(|| IdentityError::Missing {
            circuit: id,
            folder: self.param_cache.clone(),
        })?;
        let circuit = self.read(id)?;
        let known = Known {
            files,
            circuit: circuit.clone(),
        };
        self.lock().insert(id, known);
        Ok(circuit)
    }

    /// Returns the identity of a circuit if it was made, and the parameters are those that it
    /// was made of.
    #[must_use]
    pub fn known(&self, id: CircuitId) -> Option<Circuit> {
        let known = self.lock().get(&id).cloned()?;
        (self.files(id) == Some(known.files)).then_some(known.circuit)
    }

    /// Returns the identities that were made, of circuits whose parameters are still those that
    /// they were made of, by circuit.
    #[must_use]
    pub fn made(&self) -> Vec<(CircuitId, Circuit)> {
        let mut ids: Vec<CircuitId> = self.lock().keys().copied().collect();
        ids.sort();
        let made = ids.into_iter();
        made.filter_map(|id| Some((id, self.known(id)?))).collect()
    }

    /// Makes the identities of all circuits whose parameters are there, on this thread, and
    /// returns the errors of those that have none.
    pub fn make_all(&self) -> Vec<IdentityError> {
        let present = self.present().into_iter();
        present.filter_map(|id| self.of(id).err()).collect()
    }

    /// Returns the circuit of an identity that was made.
    #[must_use]
    pub fn find(&self, circuit: &Circuit) -> Option<CircuitId> {
        let mut made = self.made().into_iter();
        Some(made.find(|(_, known)| known == circuit)?.0)
    }

    fn read(&self, id: CircuitId) -> Result<Circuit, IdentityError> {
        let compiled = cached(id, &self.param_cache)?;
        let path = self.param_cache.join(parameter_files(id)?.vk);
        let key = read_bounded(&path, KEY_BYTES_MAX);
        let key = key.map_err(|source| IdentityError::Key { path, source })?;
        let mut hasher = blake3::Hasher::new_derive_key("cuzk 2026 cluster circuit");
        hasher.update(&PARTITION_FORMAT.to_le_bytes());
        hasher.update(compiled.fingerprint().as_bytes());
        hasher.update(&key);
        let name: Result<Name, _> = id.to_string().parse();
        // The name of a circuit has letters, digits and `-` only.
        let name = name.map_err(|problem| cuzk_core::Error::Start {
            problem: format!("the cluster cannot name {id}: {problem}"),
        })?;
        Ok(Circuit {
            name,
            fingerprint: Fingerprint(*hasher.finalize().as_bytes()),
        })
    }

    /// Returns the files of a circuit's parameters, if both are there.
    fn files(&self, id: CircuitId) -> Option<Files> {
        let names = parameter_files(id).ok()?;
        Some(Files {
            params: FileIdentity::of(&self.param_cache.join(names.params))?,
            key: FileIdentity::of(&self.param_cache.join(names.vk))?,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CircuitId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const ID: CircuitId = CircuitId {
        kind: ProofKind::WindowPost,
        sector_size: SectorSize::KiB2,
    };

    fn write(folder: &Path, params: &[u8], key: &[u8]) {
        let names = parameter_files(ID).unwrap();
        fs::write(folder.join(names.params), params).unwrap();
        fs::write(folder.join(names.vk), key).unwrap();
    }

    #[test]
    fn an_identity_follows_the_key_and_is_equal_on_another_machine() {
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        write(one.path(), b"params", b"a key");
        write(other.path(), b"params", b"a key");
        let (here, there) = (Identities::new(one.path()), Identities::new(other.path()));
        assert_eq!(here.known(ID), None, "nothing was read yet");
        let identity = here.of(ID).unwrap();
        assert_eq!(identity.name.as_str(), "window-post-2KiB");
        assert_eq!(here.known(ID).as_ref(), Some(&identity));
        assert_eq!((here.find(&identity), here.present()), (Some(ID), vec![ID]));
        assert_eq!(here.made(), [(ID, identity.clone())]);
        assert_eq!(there.of(ID).unwrap(), identity);

        write(one.path(), b"params", b"another key");
        assert_eq!((here.known(ID), here.find(&identity)), (None, None));
        assert_ne!(here.of(ID).unwrap(), identity);
    }

    #[test]
    fn a_circuit_without_parameters_has_no_identity() {
        let folder = tempfile::tempdir().unwrap();
        let identities = Identities::new(folder.path());
        assert!(identities.present().is_empty());
        let error = identities.of(ID).unwrap_err().to_string();
        assert!(
            error.starts_with("window-post-2KiB: its parameters are not in"),
            "{error}"
        );
        let names = parameter_files(ID).unwrap();
        fs::write(folder.path().join(names.params), "params").unwrap();
        assert!(identities.present().is_empty(), "the key is missing");
    }
}
