//! The keys of the inner-product SRS, which are read out of its file.
//!
//! Not the SRS: its points are checked where they are read. The invariants:
//!
//! * Keys that are kept are of one file. A file that takes its place is read at the next
//!   aggregation.
//! * If that file cannot be used, the keys of the old one stay.
//! * A key for proofs of networks is of a file with the networks' digest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuzk_fetch::{Digests, file_digest};
use cuzk_filecoin::{SRS_JSON, srs_file_name};
use cuzk_files::FileIdentity;
use cuzk_groth16::aggregate::{AggregationKey, SrsError, open_srs};

use super::of_aggregation;
use crate::config::Config;
use crate::error::ErrorCode;
use crate::{Error, Result};

/// The keys of the inner-product SRS in the parameter cache, each read when it is first
/// needed.
#[derive(Debug)]
pub struct AggregationKeys {
    path: PathBuf,
    /// True if the digest of the file is compared.
    check_digest: bool,
    read: Mutex<Read>,
}

/// The keys that were read.
#[derive(Debug, Default)]
struct Read {
    /// The file that they are of.
    file: Option<FileIdentity>,
    /// True if that file has the networks' digest.
    is_checked: bool,
    /// By number of proofs.
    keys: BTreeMap<usize, Arc<AggregationKey>>,
    /// A file that took the place of that one and cannot be used.
    refused: Option<FileIdentity>,
}

impl Read {
    /// Returns the key for a number of proofs, if it was read. If it must be `checked`, its
    /// file has the networks' digest.
    fn key(&self, proofs: usize, checked: bool) -> Option<Arc<AggregationKey>> {
        let key = self.keys.get(&proofs)?;
        (self.is_checked || !checked).then(|| Arc::clone(key))
    }
}

impl AggregationKeys {
    /// Names the file. Nothing is read.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            path: srs_path(&config.srs.param_cache),
            check_digest: config.srs.check_digests,
            read: Mutex::default(),
        }
    }

    /// Returns the key for a number of proofs. If the proofs are `of_networks`, the file must
    /// have the digest of the networks' list.
    pub(super) fn key(&self, proofs: usize, of_networks: bool) -> Result<Arc<AggregationKey>> {
        let checked = of_networks && self.check_digest;
        let mut read = self.lock();
        // It is looked at before the file is opened, so that a file that is replaced in
        // between is found the next time. A file that is gone replaces nothing.
        let now = FileIdentity::of(&self.path);
        let is_replaced = now.is_some() && now != read.file;
        let before = read.key(proofs, checked);
        if let Some(key) = &before
            && (!is_replaced || now == read.refused)
        {
            return Ok(Arc::clone(key));
        }
        let is_checked = !is_replaced && read.is_checked;
        match (self.open(proofs, checked && !is_checked), before) {
            (Ok(key), _) => {
                if is_replaced {
                    self.follow(&mut read, now);
                }
                read.is_checked |= checked;
                read.keys.insert(proofs, Arc::clone(&key));
                Ok(key)
            }
            (Err(error), Some(key)) => {
                read.refused = now;
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
    fn follow(&self, read: &mut Read, file: Option<FileIdentity>) {
        if !read.keys.is_empty() {
            tracing::warn!(
                path = %self.path.display(),
                "the inner-product SRS was replaced; aggregations that begin now use the new one"
            );
        }
        *read = Read {
            file,
            ..Read::default()
        };
    }

    /// Reads the key for a number of proofs.
    fn open(&self, proofs: usize, compare: bool) -> Result<Arc<AggregationKey>> {
        if compare {
            check_digest(&self.path)?;
        }
        let srs = open_srs(&self.path, proofs).map_err(Error::Srs)?;
        let key = AggregationKey::new(&srs, proofs).map_err(of_aggregation)?;
        Ok(Arc::new(key))
    }

    /// Lets go of all keys, which are read again when they are needed.
    pub(crate) fn forget(&self) {
        *self.lock() = Read::default();
    }

    // A panic in between leaves keys of one file.
    fn lock(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
