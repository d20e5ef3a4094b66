//! Multiples of a circuit's bases, in a file beside its parameters.
//!
//! MSMs over the same bases again and again take a fifth fewer additions with
//! them (`cuzk_kernels::msm::Multiples`), and none of their bases has to be
//! decoded. The file is larger than the parameters, so it is made for circuits
//! whose proofs are urgent. Only variables that are not bits have
//! multiples; a bit that is one is an addition anyway. A circuit with many constraints and
//! few such variables has multiples of these only, and none of H.
//!
//! A file is used if it exists. Callers decide when one is made. The invariant: multiples
//! that are opened were made from these parameters for this circuit and these
//! instructions, byte for byte.
//!
//! A header, in the first 4 KiB: magic, the length of what follows, JSON, its
//! BLAKE3. Then the rows of H, L, A and B in G2, each from a multiple of 4 KiB on.

mod header;
mod queries;
mod shared;
mod write;

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use blstrs::{G1Affine, G2Affine, Scalar};
use cuzk_kernels::Isa;
use cuzk_kernels::msm::{Chosen, Multiples, Shape, WithMultiples};
use cuzk_memory::{Checkpoint, NEVER_STOP, Stopped};
use cuzk_pce::{Densities, Program};

use super::error::ParamsError;
use super::file::ParamsFile;
use super::map::Map;
use header::{Header, Section};
use queries::{OfH, Queries};

pub(in crate::params) use shared::SharedMultiples;
pub use shared::{SharedFile, planned_multiples, writing_bytes};
pub use write::{WrittenMultiples, write_multiples};

/// The most that a file takes, unless its maker says otherwise: 2 GiB.
pub const LIMIT_BYTES: u64 = 2 << 30;

/// Where the multiples of these parameters' bases are, or would be.
#[must_use]
pub fn multiples_path(params: &ParamsFile) -> PathBuf {
    path_beside(params.path())
}

/// Where the multiples are of the parameters in this file.
pub(in crate::params) fn path_beside(params: &Path) -> PathBuf {
    params.with_extension("multiples")
}

/// The multiples of a circuit's bases, mapped into memory.
///
/// The file must not be changed or shortened while it is open; replace it by
/// renaming another over it.
pub struct MappedMultiples {
    map: Map,
    isa: Isa,
    h: Rows,
    l: Rows,
    a: Rows,
    b_g2: Rows,
}

/// The shapes of the multiples of each query's bases. The memory of an MSM depends on
/// them. By default there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shapes {
    /// Of H.
    pub h: Option<Shape>,
    /// Of L.
    pub l: Option<Shape>,
    /// Of A.
    pub a: Option<Shape>,
    /// Of B in G2.
    pub b_g2: Option<Shape>,
}

/// Why a file is not opened.
enum Fault {
    Stopped,
    Problem(String),
}

impl From<Stopped> for Fault {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<String> for Fault {
    fn from(problem: String) -> Self {
        Self::Problem(problem)
    }
}

impl From<&str> for Fault {
    fn from(problem: &str) -> Self {
        Self::Problem(problem.to_owned())
    }
}

/// The multiples of one query.
struct Rows {
    shape: Shape,
    chosen: Chosen,
    bytes: Range<usize>,
}

impl fmt::Debug for MappedMultiples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedMultiples")
            .field("isa", &self.isa)
            .field("file_bytes", &self.map.bytes().len())
            .finish_non_exhaustive()
    }
}

impl MappedMultiples {
    /// Maps the multiples of these parameters' bases, if the file is there, and
    /// checks every byte of it, in the current pool.
    ///
    /// # Errors
    /// [`ParamsError::Multiples`] for a file that is damaged, or of other
    /// parameters, another circuit or other instructions, and
    /// [`ParamsError::Io`].
    pub fn open(
        params: &ParamsFile,
        program: &Program<Scalar>,
        densities: &Densities,
        isa: Isa,
    ) -> Result<Option<Self>, ParamsError> {
        Self::open_while(params, program, densities, isa, &NEVER_STOP)
    }

    /// As [`Self::open`], but passes `checkpoint` before every MiB, in the current pool.
    ///
    /// # Errors
    /// As [`Self::open`], and [`ParamsError::Stopped`].
    fn open_while(
        params: &ParamsFile,
        program: &Program<Scalar>,
        densities: &Densities,
        isa: Isa,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Option<Self>, ParamsError> {
        let path = multiples_path(params);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file,
        };
        let map = file
            .and_then(|file| Map::new(&file))
            .map_err(|source| ParamsError::Io {
                path: path.clone(),
                source,
            })?;
        let header = Header::read(map.bytes()).map_err(Fault::from);
        let opened = header.and_then(|header| {
            header.expect(&Header::identity(params, program, isa))?;
            let of_h = match &header.sections {
                [h, ..] if h.points == 0 => OfH::None,
                _ => OfH::All,
            };
            let [h, l, a, b_g2] = Queries::new(program, densities, of_h).0;
            let check = |section: &Section, chosen| section.check(map.bytes(), chosen, checkpoint);
            let [ch, cl, ca, cb] = &header.sections;
            let ((h, l), (a, b_g2)) = rayon::join(
                || rayon::join(|| check(ch, h), || check(cl, l)),
                || rayon::join(|| check(ca, a), || check(cb, b_g2)),
            );
            Ok((h?, l?, a?, b_g2?))
        });
        let (h, l, a, b_g2) = opened.map_err(|fault| match fault {
            Fault::Stopped => ParamsError::Stopped,
            Fault::Problem(problem) => ParamsError::Multiples {
                path: path.clone(),
                problem,
            },
        })?;
        let multiples = Self {
            map,
            isa,
            h,
            l,
            a,
            b_g2,
        };
        let h_is_whole = multiples.h.chosen.count() == 0 || multiples.h().is_some();
        let g1_is_whole = h_is_whole && multiples.l().is_some() && multiples.a().is_some();
        if !g1_is_whole || multiples.b_g2().is_none() {
            let problem = "its dimensions contradict each other".to_owned();
            return Err(ParamsError::Multiples { path, problem });
        }
        Ok(Some(multiples))
    }

    /// In which shapes they are.
    #[must_use]
    pub fn shapes(&self) -> Shapes {
        Shapes {
            h: (self.h.chosen.count() > 0).then_some(self.h.shape),
            l: Some(self.l.shape),
            a: Some(self.a.shape),
            b_g2: Some(self.b_g2.shape),
        }
    }

    /// The size of the file.
    #[must_use]
    pub fn file_bytes(&self) -> usize {
        self.map.bytes().len()
    }

    /// Returns the multiples of the query H, if the file has them. It has those of every other
    /// query.
    #[must_use]
    pub fn h(&self) -> Option<Multiples<'_, G1Affine>> {
        (self.h.chosen.count() > 0).then(|| self.of(&self.h))?
    }

    /// Those of the query L, in the shape of H's if it has any.
    #[must_use]
    pub fn l(&self) -> Option<Multiples<'_, G1Affine>> {
        self.of(&self.l)
    }

    /// Those of the query A.
    #[must_use]
    pub fn a(&self) -> Option<Multiples<'_, G1Affine>> {
        self.of(&self.a)
    }

    /// Those of the query B in G2.
    #[must_use]
    pub fn b_g2(&self) -> Option<Multiples<'_, G2Affine>> {
        self.of(&self.b_g2)
    }

    fn of<'a, P: WithMultiples>(&'a self, rows: &'a Rows) -> Option<Multiples<'a, P>> {
        let bytes = self.map.bytes().get(rows.bytes.clone())?;
        Multiples::new(self.isa, rows.shape, &rows.chosen, bytes).ok()
    }
}
