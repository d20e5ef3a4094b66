//! Large files with known digests, fetched from several sources at once and resumed after a
//! cut.
//!
//! The files are the Groth16 parameters of Filecoin, which have up to 57 GiB for one kind.
//! Their list is `parameters.json` of the proofs crates: a name, a content identifier, and
//! the first 16 bytes of BLAKE2b-512 of each file. [`fetch`] brings files of such a list into
//! a folder. A [`Source`] is a folder, an HTTP server, an IPFS gateway or a daemon.
//!
//! This crate knows no circuits and shows nothing: an [`Observer`] is told. It blocks, and
//! has threads of its own. The invariants:
//!
//! * A file gets its name only when all its bytes have the right digest.
//! * No byte is fetched twice, with two exceptions. Bytes on their way are lost when a
//!   connection or the process ends. Bytes of a source that may be wrong come again.
//! * A source that gave wrong bytes is found, told, and not asked again in the run.
//! * A source is not believed: its lengths, ranges and bytes are checked.
//!
//! Unfinished files are in the folder `.cuzk-fetch` beside the files. A later run uses them.
//!
//! Reading order: [`fetch`] → `ranges` (the bytes of a file) → `state` → `schedule` →
//! `worker` → `keeper` → `trial` (the search for a wrong source) → `record` (the disk).
//!
//! # Example
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use cuzk_fetch::{Digest, Digests, Options, Source, fetch};
//!
//! # let scratch = cuzk_files::Scratch::new()?;
//! # let (from, into) = (scratch.path().join("from"), scratch.path().join("into"));
//! # std::fs::create_dir(&from)?;
//! # std::fs::write(from.join("x.vk"), b"key")?;
//! let digest = Digest::of_bytes(b"key");
//! let list = format!(r#"{{"x.vk": {{"cid": "Qm1", "digest": "{digest}", "sector_size": 2048}}}}"#);
//! let list = Digests::parse(&list)?;
//! let files: Vec<_> = list.files().cloned().collect();
//! let sources = vec![from.display().to_string().parse::<Source>()?];
//! let report = fetch(&files, Options::new(into.clone(), sources), &AtomicBool::new(false), &mut ())?;
//! assert!(report.is_complete());
//! assert_eq!(std::fs::read(into.join("x.vk"))?, b"key");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod digests;
mod error;
mod hash;
mod health;
mod keeper;
mod locks;
mod options;
mod progress;
mod ranges;
mod record;
mod remote;
mod run;
mod schedule;
mod shared;
mod source;
mod state;
mod trial;
mod verified;
mod worker;

pub use digests::{Digest, Digests, ListedFile};
pub use error::FetchError;
pub use hash::file_digest;
pub use options::Options;
pub use progress::{Event, FileReport, Observer, Outcome, Progress, Report, SourceReport};
pub use run::fetch;
pub use source::Source;
pub use verified::{HashedFile, noted_digest};
