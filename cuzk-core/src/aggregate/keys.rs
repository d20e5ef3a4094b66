//! The keys of the inner-product SRS, which are read out of its file.
//!
//! Not the SRS: its points are checked where they are read. The invariants:
//!
//! * Keys that are kept are of one file. A file that takes its place is read at the next
//!   aggregation, and at once if a key is being read.
//! * If that file cannot be used, the keys of the old one stay.
//! * A key for proofs of networks is of a file with the networks' digest.
//! * While a key is read, only aggregations of as many proofs wait for it.
//! * A thread that reads a key begins no other aggregation meanwhile. That could wait for the
//!   very key that the thread reads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuzk_fetch::{Digests, file_digest};
use cuzk_filecoin::{SRS_JSON, srs_file_name};
use cuzk_files::FileIdentity;
use cuzk_groth16::aggregate::{AggregationKey, SrsError, open_srs};
use cuzk_groth16::apart::on_new_threads;

use super::of_aggregation;
use crate::config::Config;
use crate::error::ErrorCode;
use crate::panics::catch_panic;
use crate::{Error, Result};

/// The keys of the inner-product SRS in the parameter cache, each read when it is first
/// needed.
#[derive(Debug)]
pub struct AggregationKeys {
    path: PathBuf,
    /// True if the digest of the file is compared.
    check_digest: bool,
    /// The number of threads that check points.
    threads: usize,
    /// A lock for each number of proofs, held while the key is read. Reading takes seconds. A
    /// thread that has one may take the lock of `kept`, and never the other way round.
    readers: Mutex<BTreeMap<usize, Arc<Mutex<()>>>>,
    /// Its lock is held for moments.
    kept: Mutex<Kept>,
}

/// The keys that were read.
#[derive(Debug, Default)]
struct Kept {
    /// The file that they are of.
    file: Option<FileIdentity>,
    /// True if that file has the networks' digest.
    is_checked: bool,
    /// By number of proofs.
    keys: BTreeMap<usize, Arc<AggregationKey>>,
    /// A file that took the place of that one and cannot be used.
    refused: Option<FileIdentity>,
}

impl Kept {
    /// Returns the key for a number of proofs, if it was read. If it must be `checked`, its
    /// file has the networks' digest.
    fn key(&self, proofs: usize, checked: bool) -> Option<Arc<AggregationKey>> {
        let key = self.keys.get(&proofs)?;
        (self.is_checked || !checked).then(|| Arc::clone(key))
    }

    /// Returns true if this is another file than that of the keys. A file that is gone
    /// replaces nothing.
    fn is_replaced_by(&self, file: Option<FileIdentity>) -> bool {
        file.is_some() && file != self.file
    }
}

impl AggregationKeys {
    /// Names the file. Nothing is read.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            path: srs_path(&config.srs.param_cache),
            check_digest: config.srs.check_digests,
            threads: config.synthesis.threads,
            readers: Mutex::default(),
            kept: Mutex::default(),
        }
    }

    /// Returns the key for a number of proofs. If the proofs are `of_networks`, the file must
    /// have the digest of the networks' list.
    pub(super) fn key(&self, proofs: usize, of_networks: bool) -> Result<Arc<AggregationKey>> {
        let checked = of_networks && self.check_digest;
        self.key_from(proofs, checked, |compare| self.open(proofs, compare))
    }

    /// Returns the key for a number of proofs: the one that is kept, or what `open` reads. It is
    /// told if the digest of the file has to be compared.
    fn key_from(
        &self,
        proofs: usize,
        checked: bool,
        open: impl Fn(bool) -> Result<Arc<AggregationKey>>,
    ) -> Result<Arc<AggregationKey>> {
        let reader = Arc::clone(lock(&self.readers).entry(proofs).or_default());
        let _reading = lock(&reader);
        loop {
            // It is looked at before the file is opened, and again afterwards.
            let file = FileIdentity::of(&self.path);
            let kept = lock(&self.kept);
            let before = kept.key(proofs, checked);
            let is_replaced = kept.is_replaced_by(file);
            if let Some(key) = &before
                && (!is_replaced || file == kept.refused)
            {
                return Ok(Arc::clone(key));
            }
            let is_checked = !is_replaced && kept.is_checked;
            drop(kept);
            let opened = open(checked && !is_checked);
            let after = FileIdentity::of(&self.path);
            if after.is_none() || after == file {
                return self.keep((proofs, checked), file, opened, before);
            }
        }
    }

    /// Keeps the key that was read of a file, or the error. Returns the key to use; `before` is
    /// that of the old file.
    fn keep(
        &self,
        (proofs, checked): (usize, bool),
        file: Option<FileIdentity>,
        opened: Result<Arc<AggregationKey>>,
        before: Option<Arc<AggregationKey>>,
    ) -> Result<Arc<AggregationKey>> {
        let mut kept = lock(&self.kept);
        match (opened, before) {
            (Ok(key), _) => {
                if kept.is_replaced_by(file) {
                    self.follow(&mut kept, file);
                }
                kept.is_checked |= checked;
                kept.keys.insert(proofs, Arc::clone(&key));
                Ok(key)
            }
            (Err(error), Some(key)) => {
                kept.refused = file;
                tracing::warn!(
                    path = %self.path.display(), code = %ErrorCode::ParametersUnusable, %error,
                    "the inner-product SRS was replaced by a file that cannot be used; proofs \
                     are aggregated with the old one until it is replaced again"
                );
                Ok(key)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Lets go of the keys of another file.
    fn follow(&self, kept: &mut Kept, file: Option<FileIdentity>) {
        if !kept.keys.is_empty() {
            tracing::warn!(
                path = %self.path.display(),
                "the inner-product SRS was replaced; aggregations that begin now use the new one"
            );
        }
        *kept = Kept {
            file,
            ..Kept::default()
        };
    }

    /// Reads the key for a number of proofs.
    fn open(&self, proofs: usize, compare: bool) -> Result<Arc<AggregationKey>> {
        let read = || {
            if compare {
                check_digest(&self.path)?;
            }
            let srs = open_srs(&self.path, proofs).map_err(Error::Srs)?;
            let key = AggregationKey::new(&srs, proofs).map_err(of_aggregation)?;
            Ok(Arc::new(key))
        };
        catch_panic("aggregation key", || {
            on_new_threads("srs", self.threads, read)?
        })
    }

    /// Lets go of all keys, which are read again when they are needed.
    pub(crate) fn forget(&self) {
        *lock(&self.kept) = Kept::default();
    }
}

// A panic in between leaves keys of one file.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file of the inner-product SRS in a parameter cache.
#[must_use]
pub fn srs_path(param_cache: &Path) -> PathBuf {
    param_cache.join(srs_file_name())
}

/// Compares the SRS with the digest of the networks' list.
fn check_digest(path: &Path) -> Result<()> {
    let failed = |source| {
        Error::Srs(SrsError::Io {
            path: path.to_owned(),
            source,
        })
    };
    let digests = Digests::parse(SRS_JSON).map_err(|problem| Error::Aggregate { problem })?;
    let listed = digests.get(&srs_file_name()).map(|listed| listed.digest);
    let digest = file_digest(path, |_| true).map_err(failed)?;
    match listed {
        Some(listed) if listed == digest => Ok(()),
        _ => Err(Error::Srs(SrsError::Digest {
            path: path.to_owned(),
        })),
    }
}

#[cfg(test)]
mod tests;
