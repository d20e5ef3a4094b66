//! Files of the inner-product SRS, in bellperson's format.
//!
//! Four vectors follow one another: the powers of α and of β in G1, then those of α and of β
//! in G2. A vector is a big-endian 32-bit count and that many compressed points.
//!
//! A file is hostile input. The invariants:
//!
//! * Its counts are checked against its real length before a point is read.
//! * Every point that is used was checked to be in its group.
//! * No more memory is taken than for the points that were asked for.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use blstrs::{G1Affine, G2Affine};
use cuzk_files::Draft;
use group::prime::PrimeCurveAffine;
use rayon::prelude::*;

use super::error::SrsError;
use super::srs::{InnerProductSrs, Powers, needed_in_g1};

/// The most points of a vector: Filecoin's SRS has so many.
const COUNT_MAX: u64 = (1 << 20) + 1;
/// Bytes of a count.
const COUNT_BYTES: usize = 4;
/// Bytes of a compressed point of G1 and of G2.
const G1_BYTES: usize = 48;
const G2_BYTES: usize = 96;

/// The vectors in their order, with the bytes of a point.
const VECTORS: [(&str, usize); 4] = [
    ("the powers of alpha in G1", G1_BYTES),
    ("the powers of beta in G1", G1_BYTES),
    ("the powers of alpha in G2", G2_BYTES),
    ("the powers of beta in G2", G2_BYTES),
];

/// Reads the powers that `proofs` proofs need.
///
/// # Errors
/// A file that is missing, cut, too long, too short for so many proofs, or that has a point
/// outside of its group.
pub fn open_srs(path: &Path, proofs: usize) -> Result<InnerProductSrs, SrsError> {
    let mut file = Reader::open(path)?;
    let starts = file.starts(proofs)?;
    let in_g1 = needed_in_g1(proofs);
    let [alpha_g1, beta_g1] = [0, 1].map(|i| file.points(starts, i, in_g1, decode_g1));
    let [alpha_g2, beta_g2] = [2, 3].map(|i| file.points(starts, i, proofs, decode_g2));
    Ok(InnerProductSrs {
        secrets: [
            Powers {
                g1: alpha_g1?,
                g2: alpha_g2?,
            },
            Powers {
                g1: beta_g1?,
                g2: beta_g2?,
            },
        ],
    })
}

/// Writes a new file, whole or not at all. A file that is there stays.
///
/// # Errors
/// [`SrsError::Io`].
pub fn write_new_srs(srs: &InnerProductSrs, path: &Path) -> Result<(), SrsError> {
    let failed = |source| SrsError::Io {
        path: path.to_owned(),
        source,
    };
    let draft = Draft::begin(path).map_err(failed)?;
    let mut writer = BufWriter::new(draft.file());
    write_srs(srs, &mut writer).map_err(failed)?;
    writer.flush().map_err(failed)?;
    drop(writer);
    draft.publish_new().map_err(failed)?;
    Ok(())
}

/// Writes the format of a file.
///
/// # Errors
/// Those of the writer, and an SRS of 2^32 powers.
pub fn write_srs(srs: &InnerProductSrs, writer: &mut impl Write) -> io::Result<()> {
    let [alpha, beta] = &srs.secrets;
    write_vector(writer, &alpha.g1, G1Affine::to_compressed)?;
    write_vector(writer, &beta.g1, G1Affine::to_compressed)?;
    write_vector(writer, &alpha.g2, G2Affine::to_compressed)?;
    write_vector(writer, &beta.g2, G2Affine::to_compressed)
}

fn write_vector<A, const BYTES: usize>(
    writer: &mut impl Write,
    points: &[A],
    encode: impl Fn(&A) -> [u8; BYTES],
) -> io::Result<()> {
    let count = u32::try_from(points.len()).map_err(io::Error::other)?;
    writer.write_all(&count.to_be_bytes())?;
    points
        .iter()
        .try_for_each(|point| writer.write_all(&encode(point)))
}

fn decode_g1(bytes: &[u8; G1_BYTES]) -> Option<G1Affine> {
    let point: Option<G1Affine> = G1Affine::from_compressed(bytes).into();
    point.filter(|point| !bool::from(point.is_identity()))
}

fn decode_g2(bytes: &[u8; G2_BYTES]) -> Option<G2Affine> {
    let point: Option<G2Affine> = G2Affine::from_compressed(bytes).into();
    point.filter(|point| !bool::from(point.is_identity()))
}

/// An open file.
struct Reader<'a> {
    path: &'a Path,
    file: File,
}

impl<'a> Reader<'a> {
    fn open(path: &'a Path) -> Result<Self, SrsError> {
        let opened = File::open(path).map_err(|source| SrsError::Io {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self { path, file: opened })
    }

    fn io(&self, source: io::Error) -> SrsError {
        SrsError::Io {
            path: self.path.to_owned(),
            source,
        }
    }

    /// Returns where the points of each vector start, bytes, if the file has the length that
    /// its counts say and enough points for `proofs` proofs.
    fn starts(&mut self, proofs: usize) -> Result<[u64; 4], SrsError> {
        let got = self
            .file
            .metadata()
            .map_err(|source| self.io(source))?
            .len();
        let mut starts = [0; 4];
        let mut end = 0;
        for (start, (_, bytes)) in starts.iter_mut().zip(VECTORS) {
            let too_short = |expected| SrsError::Length {
                path: self.path.to_owned(),
                expected,
                got,
            };
            *start = end + COUNT_BYTES as u64;
            if got < *start {
                return Err(too_short(*start));
            }
            let mut count = [0; COUNT_BYTES];
            self.read_at(end, &mut count)?;
            let count = u64::from(u32::from_be_bytes(count));
            self.check_count(count, proofs)?;
            end = *start + count * bytes as u64;
        }
        if got != end {
            return Err(SrsError::Length {
                path: self.path.to_owned(),
                expected: end,
                got,
            });
        }
        Ok(starts)
    }

    fn check_count(&self, got: u64, proofs: usize) -> Result<(), SrsError> {
        let needed = needed_in_g1(proofs);
        if got > COUNT_MAX {
            return Err(SrsError::Count {
                path: self.path.to_owned(),
                got,
                max: COUNT_MAX,
            });
        }
        if got < needed as u64 {
            return Err(SrsError::TooShort {
                path: self.path.to_owned(),
                proofs,
                needed,
                got,
            });
        }
        Ok(())
    }

    /// Reads the first `len` points of a vector.
    fn points<A: Send, const BYTES: usize>(
        &mut self,
        starts: [u64; 4],
        vector: usize,
        len: usize,
        decode: impl Fn(&[u8; BYTES]) -> Option<A> + Sync,
    ) -> Result<Vec<A>, SrsError> {
        let mut encoded = vec![[0; BYTES]; len];
        self.read_at(starts[vector], encoded.as_flattened_mut())?;
        let point = |(index, bytes): (usize, &[u8; BYTES])| {
            decode(bytes).ok_or_else(|| SrsError::Point {
                path: self.path.to_owned(),
                vector: VECTORS[vector].0,
                index,
            })
        };
        encoded.par_iter().enumerate().map(point).collect()
    }

    fn read_at(&mut self, start: u64, to: &mut [u8]) -> Result<(), SrsError> {
        let read = self
            .file
            .seek(SeekFrom::Start(start))
            .and_then(|_| self.file.read_exact(to));
        read.map_err(|source| self.io(source))
    }
}
