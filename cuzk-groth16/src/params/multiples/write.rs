//! Making a file of multiples.
//!
//! The invariant: a file is there whole or not at all.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use blstrs::Scalar;
use cuzk_files::Draft;
use cuzk_kernels::msm::{Bases, Chosen, Shape, WithMultiples};
use cuzk_kernels::{Context, KernelError};
use cuzk_pce::{Densities, Program};

use super::header::{Header, Section};
use super::multiples_path;
use super::queries::Queries;
use crate::params::error::ParamsError;
use crate::params::file::ParamsFile;

/// Bytes before the first rows, and what rows are aligned to.
const PAGE: usize = 4096;

/// The file that [`write_multiples`] made.
#[derive(Debug)]
pub struct WrittenMultiples {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub file_bytes: u64,
    /// Multiples of each base of H, L, A and B in G2. H has none if two of each base do not fit
    /// within the limit.
    pub rows: [usize; 4],
}

/// Computes the multiples of a circuit's bases for MSMs on `threads` threads, in
/// the current pool. It writes them beside the parameters, whole or not at all, in place
/// of a file that exists. `progress` gets the number of queries done, of four.
///
/// # Errors
/// * [`ParamsError::NoMultiples`] if the limit leaves room for none, or the
///   instructions have no form for them.
/// * [`ParamsError::Multiples`] for parameters that are in no file.
/// * [`ParamsError::Points`] for a base that is no point.
/// * [`ParamsError::Stopped`], and [`ParamsError::Io`].
pub fn write_multiples(
    params: &ParamsFile,
    program: &Program<Scalar>,
    densities: &Densities,
    context: Context<'_>,
    limits: (usize, u64),
    mut progress: impl FnMut(usize),
) -> Result<WrittenMultiples, ParamsError> {
    // So the work is compiled here, and not for each closure in the caller's crate.
    write_telling(params, program, densities, context, limits, &mut progress)
}

fn write_telling(
    params: &ParamsFile,
    program: &Program<Scalar>,
    densities: &Densities,
    context: Context<'_>,
    (threads, limit_bytes): (usize, u64),
    progress: &mut dyn FnMut(usize),
) -> Result<WrittenMultiples, ParamsError> {
    let isa = context.isa;
    let path = multiples_path(params);
    if params.is_in_memory() {
        let problem = "the parameters are in no file that it could be beside".to_owned();
        return Err(ParamsError::Multiples { path, problem });
    }
    let (queries, shapes) = Queries::plan(program, densities, isa, (threads, limit_bytes))
        .ok_or(ParamsError::NoMultiples { limit_bytes, isa })?;
    let mut header = Header::identity(params, program, isa);
    header.limit_bytes = limit_bytes;
    let mut write = || {
        let mut draft = Draft::begin(&path)?;
        let mut writer = Writer {
            file: draft.file_mut(),
            context,
            at: PAGE as u64,
        };
        let [h, l, a, b_g2] = &queries.0;
        header.sections = [
            writer.rows(shapes[0], h, &params.h(), || progress(1))?,
            writer.rows(shapes[1], l, &params.l(), || progress(2))?,
            writer.rows(shapes[2], a, &params.a(), || progress(3))?,
            writer.rows(shapes[3], b_g2, &params.b_g2(), || progress(4))?,
        ];
        let file_bytes = writer.at;
        writer.file.seek(SeekFrom::Start(0))?;
        header.write(writer.file)?;
        draft.publish()?;
        Ok(file_bytes)
    };
    let file_bytes = write().map_err(|error: WriteError| error.told(&path, params))?;
    Ok(WrittenMultiples {
        path,
        file_bytes,
        rows: std::array::from_fn(|query| match queries.0[query].count() {
            0 => 0,
            _ => shapes[query].rows(),
        }),
    })
}

/// Why a file could not be made.
enum WriteError {
    Io(io::Error),
    Kernel(KernelError),
}

impl WriteError {
    /// Returns it as the error of a caller that asked for the file at `path`.
    fn told(self, path: &Path, params: &ParamsFile) -> ParamsError {
        match self {
            Self::Io(source) | Self::Kernel(KernelError::Memory(source)) => ParamsError::Io {
                path: path.to_owned(),
                source,
            },
            Self::Kernel(KernelError::Stopped) => ParamsError::Stopped,
            Self::Kernel(source) => ParamsError::Points {
                path: params.path().to_owned(),
                source,
            },
        }
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<KernelError> for WriteError {
    fn from(error: KernelError) -> Self {
        Self::Kernel(error)
    }
}

/// A file in the making.
struct Writer<'a> {
    file: &'a mut File,
    context: Context<'a>,
    at: u64,
}

impl Writer<'_> {
    /// Writes the rows of one query, from the next page on.
    fn rows<P: WithMultiples>(
        &mut self,
        shape: Shape,
        chosen: &Chosen,
        bases: &dyn Bases<P>,
        done: impl FnOnce(),
    ) -> Result<Section, WriteError> {
        let start = self.at.next_multiple_of(PAGE as u64);
        self.file.seek(SeekFrom::Start(start))?;
        let mut hasher = blake3::Hasher::new();
        P::write_rows(self.context, shape, chosen, bases, |row| {
            hasher.update(row);
            Ok::<_, WriteError>(self.file.write_all(row)?)
        })?;
        self.at = start + hasher.count();
        done();
        Ok(Section {
            bits: shape.bits(),
            rows: shape.rows(),
            points: chosen.count(),
            start,
            bytes: hasher.count(),
            blake3: hasher.finalize().to_hex().to_string(),
        })
    }
}
