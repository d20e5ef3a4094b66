//! The parameters of a circuit in use: their file, and the multiples beside it.
//!
//! Not how either file is read. The invariant: the multiples that are shared are of these
//! parameters.

use std::convert::Infallible;
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use cuzk_kernels::{Context, Isa};
use rayon::ThreadPool;

use super::error::ParamsError;
use super::file::ParamsFile;
use super::multiples::{SharedFile, SharedMultiples};
use crate::circuit::Circuit;

/// The parameters of one circuit, mapped into memory, with their multiples once someone
/// asked for them.
///
/// The files must not be changed or shortened while they are open; replace them by
/// renaming others over them.
pub struct MappedParams {
    file: ParamsFile,
    multiples: SharedMultiples,
}

impl fmt::Debug for MappedParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl Deref for MappedParams {
    type Target = ParamsFile;

    fn deref(&self) -> &ParamsFile {
        &self.file
    }
}

impl MappedParams {
    /// Maps a `.params` file. Its multiples are opened when they are asked for.
    ///
    /// # Errors
    ///
    /// As [`ParamsFile::open`].
    pub fn open(path: &Path) -> Result<Self, ParamsError> {
        Ok(Self {
            file: ParamsFile::open(path)?,
            multiples: SharedMultiples::default(),
        })
    }

    /// The multiples of these parameters' bases, if there are any to be used;
    /// opened, in `pool`, by the first who asks.
    pub fn multiples(&self, circuit: &Circuit, isa: Isa, pool: &ThreadPool) -> Arc<SharedFile> {
        let multiples = self.multiples_unless(circuit, isa, pool, || None::<Infallible>);
        match multiples {
            Ok(file) => file,
        }
    }

    /// The multiples, as [`MappedParams::multiples`] gives them. Who opens them or waits
    /// for another to do so asks `stop` every millisecond or so, and leaves with the error
    /// that it returns.
    ///
    /// # Errors
    /// What `stop` returns.
    pub fn multiples_unless<E>(
        &self,
        circuit: &Circuit,
        isa: Isa,
        pool: &ThreadPool,
        stop: impl Fn() -> Option<E> + Sync,
    ) -> Result<Arc<SharedFile>, E> {
        self.multiples
            .open_unless(&self.file, circuit, isa, pool, stop)
    }

    /// Opens the file of multiples again, after it was made anew if it is of something
    /// else or damaged, or made if there is none and it is `wanted`: for sums on
    /// `threads` threads, within the limit that its maker had set. Takes seconds to
    /// minutes, in the current pool. Whoever asks for the multiples from then on is given
    /// these. Returns true if a file was made: none while there are others in use, so that
    /// two processes which disagree do not write over each other's for ever.
    ///
    /// # Errors
    /// As [`write_multiples`](super::write_multiples). But for [`ParamsError::Stopped`], it
    /// is not tried again until another file is there.
    pub fn renew_multiples(
        &self,
        circuit: &Circuit,
        context: Context<'_>,
        threads: usize,
        wanted: bool,
    ) -> Result<bool, ParamsError> {
        self.multiples
            .renew(&self.file, circuit, context, threads, wanted)
    }
}
