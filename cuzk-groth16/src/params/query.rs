//! The queries of a parameter file: their names and their points.
//!
//! Not the file: a query is given its bytes, whose number has been checked. The
//! invariant: a point that is read is on the curve, not at infinity, and was
//! written the way the format says.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

use cuzk_kernels::msm::{Bases, BasesError};
use group::UncompressedEncoding;
use group::prime::PrimeCurveAffine;

/// The bit of a point's first byte that says it is compressed.
const COMPRESSED_FLAG: u8 = 0x80;

/// A part of a parameter file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryName {
    /// The verifying key's six points.
    Key,
    /// The verifying key's points for the public inputs.
    Ic,
    /// Powers of τ times the vanishing polynomial.
    H,
    /// The aux variables.
    L,
    /// A, in G1.
    A,
    /// B, in G1.
    BG1,
    /// B, in G2.
    BG2,
}

impl fmt::Display for QueryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "the verifying key",
            Self::Ic => "the query IC",
            Self::H => "the query H",
            Self::L => "the query L",
            Self::A => "the query A",
            Self::BG1 => "the query B in G1",
            Self::BG2 => "the query B in G2",
        })
    }
}

/// The points of one query, decoded from the file as they are read.
///
/// Every point is checked to be on the curve and not at infinity. It is not checked to be
/// in the subgroup of prime order, as in bellperson. The check would take longer than the
/// proof, and a proof from another point does not verify.
#[derive(Clone, Copy)]
pub struct Query<'a, P> {
    path: &'a Path,
    name: QueryName,
    bytes: &'a [u8],
    points: PhantomData<fn() -> P>,
}

impl<'a, P> Query<'a, P> {
    /// The query `name` of the file `path`, whose points are `bytes`.
    pub(super) fn new(path: &'a Path, name: QueryName, bytes: &'a [u8]) -> Self {
        Self {
            path,
            name,
            bytes,
            points: PhantomData,
        }
    }

    /// The points as the file has them, unchecked.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<P> fmt::Debug for Query<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, path) = (self.name, self.path.display());
        write!(f, "{name} of {path} ({} bytes)", self.bytes.len())
    }
}

impl<P: UncompressedEncoding> Query<'_, P> {
    fn point_bytes() -> usize {
        P::Uncompressed::default().as_ref().len()
    }
}

impl<P> Bases<P> for Query<'_, P>
where
    P: UncompressedEncoding + PrimeCurveAffine,
{
    fn len(&self) -> usize {
        self.bytes.len() / Self::point_bytes()
    }

    fn encoded(&self) -> Option<&[u8]> {
        Some(self.bytes)
    }

    fn read(&self, start: usize, out: &mut [P]) -> Result<(), BasesError> {
        let point_bytes = Self::point_bytes();
        let end = start.saturating_add(out.len());
        let range = start.saturating_mul(point_bytes)..end.saturating_mul(point_bytes);
        let bytes = self.bytes.get(range).ok_or(BasesError::OutOfRange {
            start,
            end,
            len: self.len(),
        })?;
        for (offset, (point, bytes)) in out
            .iter_mut()
            .zip(bytes.chunks_exact(point_bytes))
            .enumerate()
        {
            *point = decode(bytes).map_err(|problem| BasesError::Invalid {
                index: start + offset,
                reason: format!("{problem}, in {} of {}", self.name, self.path.display()),
            })?;
        }
        Ok(())
    }
}

fn decode<P>(bytes: &[u8]) -> Result<P, &'static str>
where
    P: UncompressedEncoding + PrimeCurveAffine,
{
    // blst would take the first half of such a point for all of it.
    if bytes
        .first()
        .is_some_and(|first| first & COMPRESSED_FLAG != 0)
    {
        return Err("a compressed point, where uncompressed ones are due");
    }
    let mut encoded = P::Uncompressed::default();
    encoded.as_mut().copy_from_slice(bytes);
    // Checks the encoding and the curve equation, though not the subgroup.
    let point = Option::<P>::from(P::from_uncompressed_unchecked(&encoded));
    match point {
        None => Err("not a point of the curve"),
        Some(point) if bool::from(point.is_identity()) => Err("the point at infinity"),
        Some(point) => Ok(point),
    }
}
