//! Multiples of a circuit's bases, in a file beside its parameters.
//!
//! Sums over the same bases again and again take a fifth fewer additions with
//! them (`cuzk_kernels::msm::Multiples`), and none of their bases has to be
//! decoded. The file is larger than the parameters, so it is made for circuits
//! that someone waits for: PoSts. Only variables that are not bits have
//! multiples; a bit that is one is an addition anyway.
//!
//! Not a cache: a file is used if it is there, and nothing here makes one unasked.
//! The invariant: what is opened was made from these parameters for this circuit
//! and these instructions, byte for byte.
//!
//! A header, in the first 4 KiB: magic, the length of what follows, JSON, its
//! BLAKE3. Then the rows of H, L, A and B in G2, each from a multiple of 4 KiB on.

use std::fmt;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::PathBuf;

use blstrs::{G1Affine, G2Affine, Scalar};
use cuzk_kernels::msm::{Bases, Chosen, Multiples, Shape, WithMultiples};
use cuzk_kernels::{Isa, KernelError};
use cuzk_pce::{Densities, Program};
use serde::{Deserialize, Serialize};

use super::error::ParamsError;
use super::file::MappedParams;
use super::map::Map;
use crate::files::write_whole_with;

const MAGIC: &[u8; 8] = b"cuzkmult";
const VERSION: u32 = 1;
/// Bytes before the first rows, and what rows are aligned to.
const PAGE: usize = 4096;
/// Bytes of a BLAKE3 digest.
const DIGEST_BYTES: usize = 32;

/// Where the multiples of these parameters' bases are, or would be.
#[must_use]
pub fn multiples_path(params: &MappedParams) -> PathBuf {
    params.path().with_extension("multiples")
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
        params: &MappedParams,
        program: &Program<Scalar>,
        densities: &Densities,
        isa: Isa,
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
        let opened = Header::read(map.bytes()).and_then(|header| {
            header.expect(&Header::identity(params, program, isa))?;
            let [h, l, a, b_g2] = Queries::new(program, densities).0;
            let check = |section: &Section, chosen| section.check(map.bytes(), chosen);
            let [ch, cl, ca, cb] = &header.sections;
            let ((h, l), (a, b_g2)) = rayon::join(
                || rayon::join(|| check(ch, h), || check(cl, l)),
                || rayon::join(|| check(ca, a), || check(cb, b_g2)),
            );
            Ok((h?, l?, a?, b_g2?))
        });
        let (h, l, a, b_g2) = opened.map_err(|problem| ParamsError::Multiples {
            path: path.clone(),
            problem,
        })?;
        let multiples = Self {
            map,
            isa,
            h,
            l,
            a,
            b_g2,
        };
        let g1 = [multiples.h(), multiples.l(), multiples.a()];
        if g1.iter().any(Option::is_none) || multiples.b_g2().is_none() {
            let problem = "its dimensions contradict each other".to_owned();
            return Err(ParamsError::Multiples { path, problem });
        }
        Ok(Some(multiples))
    }

    /// Those of the query H. What is opened has those of every query.
    #[must_use]
    pub fn h(&self) -> Option<Multiples<'_, G1Affine>> {
        self.of(&self.h)
    }

    /// Those of the query L, in the shape of H's.
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

/// What a file is said to be.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: u32,
    isa: String,
    /// The fingerprint of the circuit.
    circuit: String,
    /// A digest of the parameters' verifying key and size.
    params: String,
    sections: [Section; 4],
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    bits: u32,
    rows: usize,
    points: usize,
    start: u64,
    bytes: u64,
    blake3: String,
}

impl Header {
    fn identity(params: &MappedParams, program: &Program<Scalar>, isa: Isa) -> Self {
        Self {
            version: VERSION,
            isa: isa.name().to_owned(),
            circuit: program.fingerprint().to_string(),
            params: params.digest().to_hex().to_string(),
            sections: Default::default(),
        }
    }

    fn read(bytes: &[u8]) -> Result<Self, String> {
        let damaged = || "it is damaged or cut short".to_owned();
        let bytes = bytes.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let (len, bytes) = bytes.split_first_chunk().ok_or_else(damaged)?;
        let len = u32::from_le_bytes(*len) as usize;
        let (json, bytes) = bytes.split_at_checked(len).ok_or_else(damaged)?;
        let digest = bytes.first_chunk::<DIGEST_BYTES>().ok_or_else(damaged)?;
        if blake3::hash(json).as_bytes() != digest {
            return Err(damaged());
        }
        serde_json::from_slice(json).map_err(|_| "it is of another version".to_owned())
    }

    fn write(&self, mut to: impl Write) -> io::Result<()> {
        let json = serde_json::to_vec(self)?;
        let len = u32::try_from(json.len()).map_err(io::Error::other)?;
        to.write_all(MAGIC)?;
        to.write_all(&len.to_le_bytes())?;
        to.write_all(&json)?;
        to.write_all(blake3::hash(&json).as_bytes())
    }

    /// Whether the file is for this circuit, these parameters and instructions.
    fn expect(&self, expected: &Self) -> Result<(), String> {
        let parts = [
            ("instructions", &self.isa, &expected.isa),
            ("a circuit", &self.circuit, &expected.circuit),
            ("parameters", &self.params, &expected.params),
        ];
        if self.version != expected.version {
            return Err(format!(
                "it is of version {}, expected {}",
                self.version, expected.version
            ));
        }
        match parts.into_iter().find(|(_, got, expected)| got != expected) {
            None => Ok(()),
            Some((what, got, expected)) => {
                Err(format!("it is for {what} {got}, expected {expected}"))
            }
        }
    }
}

impl Section {
    /// Checks the rows' place and their digest.
    fn check(&self, file: &[u8], chosen: Chosen) -> Result<Rows, String> {
        let shape = Shape::new(self.bits, self.rows)
            .filter(|_| self.points == chosen.count())
            .ok_or("its dimensions are another circuit's")?;
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let bytes = place(self.start)..place(self.start.saturating_add(self.bytes));
        let rows = file.get(bytes.clone()).ok_or("it is cut short")?;
        if blake3::hash(rows).to_hex().as_str() != self.blake3 {
            return Err("it is damaged".to_owned());
        }
        Ok(Rows {
            shape,
            chosen,
            bytes,
        })
    }
}

/// The bases of H, L, A and B in G2 that have multiples: all, or those of the
/// inputs and of the variables that are not bits.
struct Queries([Chosen; 4]);

impl Queries {
    fn new(program: &Program<Scalar>, densities: &Densities) -> Self {
        let rows = program.rows() + program.num_inputs();
        let bits = program.boolean_columns();
        let of = |inputs: usize, aux: Vec<usize>| {
            Chosen::new(inputs + aux.len(), |index| {
                let aux = index.checked_sub(inputs).and_then(|index| aux.get(index));
                aux.is_none_or(|aux| !bits.contains(*aux))
            })
        };
        Self([
            Chosen::new(rows.next_power_of_two() - 1, |_| true),
            of(0, (0..program.num_aux()).collect()),
            of(program.num_inputs(), densities.a_aux.iter().collect()),
            of(densities.b_input.count(), densities.b_aux.iter().collect()),
        ])
    }

    /// The shapes with which the sums take the fewest additions on `threads`
    /// threads and the file is no longer than `limit_bytes`; `None` if not even two
    /// rows fit.
    fn shapes(&self, isa: Isa, threads: usize, limit_bytes: u64) -> Option<[Shape; 4]> {
        let [h, l, a, b_g2] = &self.0;
        let shapes = |rows_max| {
            let shape = |terms| Shape::choose(terms, threads, rows_max);
            let h_and_l = shape(h.count() + l.count());
            [h_and_l, h_and_l, shape(a.count()), shape(b_g2.count())]
        };
        let bytes = |shapes: &[Shape; 4]| {
            let g1 = [h, l, a].into_iter().zip(shapes).map(|(chosen, shape)| {
                Some(G1Affine::row_bytes(isa, chosen.count())? as u64 * shape.rows() as u64)
            });
            let g2 = G2Affine::row_bytes(isa, b_g2.count())? as u64 * shapes[3].rows() as u64;
            g1.chain([Some(g2)]).sum::<Option<u64>>()
        };
        (2..=ROWS_MAX)
            .rev()
            .map(shapes)
            .find(|shapes| bytes(shapes).is_some_and(|bytes| bytes <= limit_bytes))
    }
}

/// More rows than any sum of a circuit's is faster with.
const ROWS_MAX: usize = 32;

/// What [`write_multiples`] made.
#[derive(Debug)]
pub struct WrittenMultiples {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub file_bytes: u64,
    /// Multiples of each base of H, L, A and B in G2.
    pub rows: [usize; 4],
}

/// Computes the multiples of a circuit's bases for sums on `threads` threads, in
/// the current pool, and writes them beside the parameters, whole or not at all
/// and over what was there. `progress` is told how many queries of four are
/// done.
///
/// # Errors
/// [`ParamsError::Multiples`] if the limit leaves room for none or the
/// instructions have no form for them, [`ParamsError::Points`] for a base that
/// is no point, and [`ParamsError::Io`].
pub fn write_multiples(
    params: &MappedParams,
    program: &Program<Scalar>,
    densities: &Densities,
    isa: Isa,
    (threads, limit_bytes): (usize, u64),
    mut progress: impl FnMut(usize),
) -> Result<WrittenMultiples, ParamsError> {
    let path = multiples_path(params);
    let queries = Queries::new(program, densities);
    let shapes =
        queries
            .shapes(isa, threads, limit_bytes)
            .ok_or_else(|| ParamsError::Multiples {
                path: path.clone(),
                problem: format!(
                    "{limit_bytes} bytes leave no room for multiples, or the instructions \
                 ({isa}) have no form for them"
                ),
            })?;
    let mut header = Header::identity(params, program, isa);
    let mut file_bytes = 0;
    let written = write_whole_with(&path, |file| {
        let mut writer = Writer {
            file,
            isa,
            at: PAGE as u64,
        };
        let [h, l, a, b_g2] = &queries.0;
        header.sections = [
            writer.rows(shapes[0], h, &params.h(), || progress(1))?,
            writer.rows(shapes[1], l, &params.l(), || progress(2))?,
            writer.rows(shapes[2], a, &params.a(), || progress(3))?,
            writer.rows(shapes[3], b_g2, &params.b_g2(), || progress(4))?,
        ];
        file_bytes = writer.at;
        writer.file.seek(SeekFrom::Start(0))?;
        Ok::<_, WriteError>(header.write(writer.file)?)
    });
    written.map_err(|error| match error {
        WriteError::Io(source) => ParamsError::Io {
            path: path.clone(),
            source,
        },
        WriteError::Kernel(source) => ParamsError::Points {
            path: params.path().to_owned(),
            source,
        },
    })?;
    Ok(WrittenMultiples {
        path,
        file_bytes,
        rows: shapes.map(Shape::rows),
    })
}

/// Why a file could not be made.
enum WriteError {
    Io(io::Error),
    Kernel(KernelError),
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
    isa: Isa,
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
        P::write_rows(self.isa.into(), shape, chosen, bases, |row| {
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
