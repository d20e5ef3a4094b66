//! The multiples of parameters that are in use: opened once, and made when there is no
//! file, or one of something else.
//!
//! A proof never makes them. The invariant: shared multiples are those of the file when it
//! was opened. They stay whole for their users when another file takes its place.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use blstrs::G1Affine;
use cuzk_kernels::msm::WithMultiples;
use cuzk_kernels::{Context, Isa};
use cuzk_memory::{Checkpoint, Stopped};
use rayon::ThreadPool;

use super::header::Header;
use super::queries::{OfH, Queries};
use super::{LIMIT_BYTES, MappedMultiples, Shapes, multiples_path, write_multiples};
use crate::apart::on_threads_like;
use crate::circuit::Circuit;
use crate::once_map::OnceMap;
use crate::params::error::ParamsError;
use crate::params::file::ParamsFile;
use crate::params::map::Map;
use cuzk_files::FileIdentity;

/// The multiples of parameters that are in use, by the instructions that they are for.
#[derive(Debug, Default)]
pub(in crate::params) struct SharedMultiples(OnceMap<&'static str, SharedFile>);

/// The multiples for parameters in use, or the reason why there are none.
#[derive(Debug)]
pub struct SharedFile {
    found: Found,
    /// The reason why the file is not used, until it is taken.
    problem: Mutex<Option<ParamsError>>,
    /// The file as it was when it was opened.
    file: Option<FileIdentity>,
}

#[derive(Debug)]
enum Found {
    Usable(Arc<MappedMultiples>),
    /// A file that was made for something else, or is damaged, though there could be
    /// one of `limit_bytes` at most.
    Stale {
        limit_bytes: u64,
    },
    /// No file, though there could be one.
    Absent,
    /// Nothing, and nothing to be done about it.
    Nothing,
}

impl SharedFile {
    /// Opens the file beside the parameters, in the current pool. The reason why a file
    /// cannot be used is kept for [`Self::take_problem`].
    ///
    /// # Errors
    /// [`Stopped`].
    fn open(
        params: &ParamsFile,
        circuit: &Circuit,
        isa: Isa,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Self, Stopped> {
        if params.is_in_memory() {
            return Ok(Self {
                found: Found::Nothing,
                problem: Mutex::default(),
                file: None,
            });
        }
        let path = multiples_path(params);
        // Before it is opened, so that what takes its place in between is noticed.
        let file = FileIdentity::of(&path);
        let (program, densities) = (circuit.program(), circuit.densities());
        let could_be_made = G1Affine::row_bytes(isa, 1).is_some();
        let opened = MappedMultiples::open_while(params, program, densities, isa, checkpoint);
        let mut problem = None;
        let found = match opened {
            Err(ParamsError::Stopped) => return Err(Stopped),
            Ok(Some(multiples)) => Found::Usable(Arc::new(multiples)),
            Ok(None) if could_be_made => Found::Absent,
            Ok(None) => Found::Nothing,
            Err(error) => {
                let is_stale = matches!(error, ParamsError::Multiples { .. });
                problem = Some(error);
                if is_stale && could_be_made {
                    let limit_bytes = limit_bytes(&path).unwrap_or(LIMIT_BYTES);
                    Found::Stale { limit_bytes }
                } else {
                    Found::Nothing
                }
            }
        };
        let problem = Mutex::new(problem);
        Ok(Self {
            found,
            problem,
            file,
        })
    }

    /// Returns no multiples, for this reason. The file may be opened later.
    fn unopened(problem: ParamsError) -> Self {
        Self {
            found: Found::Nothing,
            problem: Mutex::new(Some(problem)),
            file: None,
        }
    }

    /// Returns the reason why the file is not used. Only the first call gets it, so that
    /// an operator is told once.
    #[must_use]
    pub fn take_problem(&self) -> Option<ParamsError> {
        let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        problem.take()
    }

    /// The multiples, if there are any to be used.
    #[must_use]
    pub fn usable(&self) -> Option<&MappedMultiples> {
        match &self.found {
            Found::Usable(multiples) => Some(multiples),
            Found::Stale { .. } | Found::Absent | Found::Nothing => None,
        }
    }

    /// Returns true if there was no file, though there could be one.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self.found, Found::Absent)
    }

    /// Returns true if the file is of something else, or if there is another now. Then
    /// [`renew_multiples`](crate::params::MappedParams::renew_multiples) finds or makes
    /// others. A file that is gone is no reason to let go of its multiples.
    #[must_use]
    pub fn is_outdated(&self, params: &ParamsFile) -> bool {
        if params.is_in_memory() {
            return false;
        }
        let now = FileIdentity::of(&multiples_path(params));
        matches!(self.found, Found::Stale { .. }) || now.is_some() && now != self.file
    }
}

/// Returns the limit within which a file was made, if that can still be read.
fn limit_bytes(path: &Path) -> Option<u64> {
    let map = Map::new(&File::open(path).ok()?).ok()?;
    Some(Header::read(map.bytes()).ok()?.limit_bytes)
}

/// The memory of a thread that doubles points, with its stack: as measured, without gaps in
/// the heap.
const THREAD_BYTES: u64 = 5 << 17;

/// Returns the memory that making the multiples of a circuit's bases takes on one thread,
/// in bytes, those of H among them. `None` for instructions that have no form for them.
#[must_use]
pub fn writing_bytes(circuit: &Circuit, isa: Isa) -> Option<u64> {
    let queries = Queries::new(circuit.program(), circuit.densities(), OfH::All);
    Some(queries.row_bytes(isa)? + THREAD_BYTES)
}

/// Returns the shapes in which [`write_multiples`] makes multiples of a circuit's bases, for
/// MSMs on `threads` threads and within `limit_bytes`. The second figure is the size of
/// their rows, in bytes. `None` if it makes none.
#[must_use]
pub fn planned_multiples(
    circuit: &Circuit,
    isa: Isa,
    threads: usize,
    limit_bytes: u64,
) -> Option<(Shapes, u64)> {
    let limits = (threads, limit_bytes);
    let (queries, shapes) = Queries::plan(circuit.program(), circuit.densities(), isa, limits)?;
    let rows_bytes = queries.rows_bytes(isa, &shapes)?;
    let [h, l, a, b_g2] = shapes;
    let shapes = Shapes {
        h: (queries.0[0].count() > 0).then_some(h),
        l: Some(l),
        a: Some(a),
        b_g2: Some(b_g2),
    };
    Some((shapes, rows_bytes))
}

impl SharedMultiples {
    /// Returns the multiples beside `params`, opened by the first that asks, on as many new
    /// threads as `pool` has. See
    /// [`MappedParams::multiples_unless_stopped`](crate::params::MappedParams::multiples_unless_stopped).
    ///
    /// # Errors
    /// [`Stopped`].
    pub(in crate::params) fn open_unless_stopped(
        &self,
        params: &ParamsFile,
        circuit: &Circuit,
        isa: Isa,
        pool: &ThreadPool,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Arc<SharedFile>, Stopped> {
        let unpaused = checkpoint.unpaused();
        let open = || SharedFile::open(params, circuit, isa, &unpaused);
        self.0
            .get_or_make_unless_stopped(isa.name(), checkpoint, || {
                on_threads_like(pool, "multiples", open)
                    .unwrap_or_else(|error| Ok(SharedFile::unopened(error.into())))
            })
    }

    /// Opens the file again, made anew or made where that is due. See
    /// [`MappedParams::renew_multiples`](crate::params::MappedParams::renew_multiples).
    ///
    /// # Errors
    /// As [`write_multiples`].
    pub(in crate::params) fn renew(
        &self,
        params: &ParamsFile,
        circuit: &Circuit,
        context: Context<'_>,
        threads: usize,
        wanted: bool,
    ) -> Result<bool, ParamsError> {
        let name = context.isa.name();
        let share = |file| self.0.replace(name, file);
        let open = || SharedFile::open(params, circuit, context.isa, context.checkpoint);
        let opened = open()?;
        let in_use = self.0.get(&name);
        let limit_bytes = match (&opened.found, in_use.as_deref().map(|in_use| &in_use.found)) {
            (Found::Usable(multiples), _) | (_, Some(Found::Usable(multiples))) => {
                let found = Found::Usable(Arc::clone(multiples));
                share(SharedFile { found, ..opened });
                return Ok(false);
            }
            (Found::Stale { limit_bytes }, _) => *limit_bytes,
            (Found::Absent, _) if wanted => LIMIT_BYTES,
            (Found::Absent | Found::Nothing, _) => {
                share(opened);
                return Ok(false);
            }
        };
        let (program, densities) = (circuit.program(), circuit.densities());
        let limits = (threads, limit_bytes);
        match write_multiples(params, program, densities, context, limits, |_| ()) {
            Ok(_) => {
                share(open()?);
                Ok(true)
            }
            Err(ParamsError::Stopped) => Err(ParamsError::Stopped),
            Err(error) => {
                // The caller tells the reason.
                share(SharedFile {
                    found: Found::Nothing,
                    problem: Mutex::default(),
                    file: opened.file,
                });
                Err(error)
            }
        }
    }
}
