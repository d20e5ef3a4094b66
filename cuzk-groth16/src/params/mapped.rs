//! The parameters of a circuit in use: their file, and the multiples beside it.
//!
//! Not how either file is read. The invariant: the multiples that are shared are of these
//! parameters.

use std::fmt;
use std::io::{Read, Write};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use cuzk_kernels::{Context, Isa};
use cuzk_memory::{Checkpoint, NEVER_STOP, Stopped};
use rayon::ThreadPool;

use super::error::ParamsError;
use super::file::ParamsFile;
use super::multiples::{SharedFile, SharedMultiples};
use super::new_file::{created, write_new};
use super::reader::read_bytes;
use crate::circuit::Circuit;

/// The parameters of one circuit, mapped into memory, with their multiples once they were
/// asked for.
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

/// The name of parameters that are in no file.
const IN_MEMORY: &str = "(parameters in memory)";

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

    /// Takes the bytes of a `.params` file, which stay in memory. There are no multiples of
    /// such parameters.
    ///
    /// # Errors
    ///
    /// As [`ParamsFile::open`].
    pub fn of_bytes(bytes: Vec<u8>) -> Result<Self, ParamsError> {
        Ok(Self {
            file: ParamsFile::of_bytes(Path::new(IN_MEMORY), bytes)?,
            multiples: SharedMultiples::default(),
        })
    }

    /// Reads parameters in bellperson's format, and no byte after them. They stay in memory.
    ///
    /// # Errors
    ///
    /// As [`ParamsFile::open`], and [`ParamsError::Io`] if there are too few bytes.
    pub fn read(reader: &mut impl Read) -> Result<Self, ParamsError> {
        let bytes = read_bytes(reader).map_err(|source| ParamsError::Io {
            path: IN_MEMORY.into(),
            source,
        })?;
        Self::of_bytes(bytes)
    }

    /// Writes the parameters to a new file, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`ParamsError::Io`], also if there is a file of this name.
    pub fn write(&self, path: &Path) -> Result<(), ParamsError> {
        write_new(path, |writer| {
            let written = writer.write_all(self.bytes());
            written.map_err(|source| created(path, source))
        })
    }

    /// Returns the multiples of these parameters' bases, if there are any to be used. The
    /// first thread that asks opens them, on as many new threads as `pool` has. The pool's own
    /// threads open them only if the system has no other threads.
    pub fn multiples(&self, circuit: &Circuit, isa: Isa, pool: &ThreadPool) -> Arc<SharedFile> {
        loop {
            // Nothing stops it, so the first turn returns.
            let multiples = self.multiples_unless_stopped(circuit, isa, pool, &NEVER_STOP);
            if let Ok(multiples) = multiples {
                return multiples;
            }
        }
    }

    /// As [`Self::multiples`]. A thread that opens the file, or waits for another to open it,
    /// asks every millisecond or so if `checkpoint` is cancelled. It never pauses, because
    /// urgent work may wait for this file.
    ///
    /// # Errors
    /// [`Stopped`].
    pub fn multiples_unless_stopped(
        &self,
        circuit: &Circuit,
        isa: Isa,
        pool: &ThreadPool,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Arc<SharedFile>, Stopped> {
        self.multiples
            .open_unless_stopped(&self.file, circuit, isa, pool, checkpoint)
    }

    /// Makes the file of multiples if that is due, and opens it again. It is due if the
    /// file is damaged or of something else, or if there is none and it is `wanted`. The
    /// multiples are for MSMs on `threads` threads, within the limit that the file's maker
    /// had set. Making takes seconds to minutes, in the current pool. Later calls for the
    /// multiples return these.
    ///
    /// Returns true if a file was made. While usable multiples are in use, none is made.
    /// Two processes which disagree therefore do not write over each other's for ever.
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
