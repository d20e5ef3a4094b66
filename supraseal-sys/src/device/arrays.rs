//! The arrays of a circuit and of a witness, as C++ takes them.
//!
//! Not the objects of C++. Invariant: the lengths of a circuit's arrays agree with each other.

use blstrs::Scalar;

use super::plan::{CircuitShape, Queries};
use crate::status::{Code, Status};

/// The length of an uncompressed point in G1.
const G1_BYTES: usize = 96;
/// The length of an uncompressed point in G2.
const G2_BYTES: usize = 192;
/// The number of rows of a block, as in `cuda/kernels.hpp`.
const BLOCK_ROWS: usize = 256;

/// A flat compiled circuit with the points of its parameters, as
/// `cuda/kernels.hpp` takes them.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "named and explained there")]
pub struct CircuitArrays<'a> {
    pub log_domain: u32,
    pub rows: u32,
    pub num_inputs: u32,
    pub num_aux: u32,
    pub max_wide: u32,
    pub coefficients: &'a [Scalar],
    pub integers: &'a [i32],
    pub part_ends: &'a [u32],
    /// Two words each.
    pub items: &'a [u32],
    /// Two words each.
    pub shapes: &'a [u32],
    /// Two words each.
    pub unit_rows: &'a [u32],
    /// Two words each.
    pub references: &'a [u32],
    pub block_references: &'a [u32],
    /// Bit i of word i / 64 tells if auxiliary variable i is in the query over A.
    pub a_aux: &'a [u64],
    /// The bits of both queries over B, in the same form.
    pub b_aux: &'a [u64],
    /// The inputs in the queries over B, ascending.
    pub b_inputs: &'a [u32],
    /// The points, uncompressed, as a parameter file has them.
    pub points: Queries<&'a [u8]>,
}

impl CircuitArrays<'_> {
    /// Returns the sizes, if they agree with each other.
    ///
    /// # Errors
    ///
    /// [`Code::LengthMismatch`].
    pub fn shape(&self) -> Result<CircuitShape, Status> {
        let words = self.num_aux.div_ceil(64) as usize;
        expect_len("integers", self.coefficients.len(), self.integers.len())?;
        let blocks = (self.rows as usize).div_ceil(BLOCK_ROWS) + 1;
        expect_len("block_references", blocks, self.block_references.len())?;
        expect_len("a_aux", words, self.a_aux.len())?;
        expect_len("b_aux", words, self.b_aux.len())?;
        let points = |bytes: &[u8], each: usize| match bytes.len() % each {
            0 => Ok((bytes.len() / each) as u64),
            _ => Err(mismatch(
                "points",
                bytes.len().next_multiple_of(each),
                bytes.len(),
            )),
        };
        Ok(CircuitShape {
            log_domain: self.log_domain,
            rows: self.rows,
            num_inputs: self.num_inputs,
            num_aux: self.num_aux,
            max_wide: self.max_wide,
            num_b_inputs: count("b_inputs", self.b_inputs.len())?,
            num_coefficients: count("coefficients", self.coefficients.len())?,
            num_parts: count("part_ends", self.part_ends.len())?,
            num_items: tuples("items", self.items.len(), 2)?,
            num_shapes: tuples("shapes", self.shapes.len(), 2)?,
            num_unit_rows: tuples("unit_rows", self.unit_rows.len(), 2)?,
            num_references: tuples("references", self.references.len(), 3)?,
            num_points: Queries {
                h: points(self.points.h, G1_BYTES)?,
                l: points(self.points.l, G1_BYTES)?,
                a: points(self.points.a, G1_BYTES)?,
                b_g1: points(self.points.b_g1, G1_BYTES)?,
                b_g2: points(self.points.b_g2, G2_BYTES)?,
            },
        })
    }
}

fn mismatch(name: &str, expected: usize, got: usize) -> Status {
    let message = format!("{name}: expected {expected} elements, got {got}");
    Status::new(Code::LengthMismatch, message)
}

pub(crate) fn expect_len(name: &str, expected: usize, got: usize) -> Result<(), Status> {
    if got == expected {
        return Ok(());
    }
    Err(mismatch(name, expected, got))
}

/// Returns the number of entries of `each` words.
fn tuples(name: &str, words: usize, each: usize) -> Result<u32, Status> {
    expect_len(name, words.next_multiple_of(each), words)?;
    count(name, words / each)
}

fn count(name: &str, len: usize) -> Result<u32, Status> {
    u32::try_from(len).map_err(|_| mismatch(name, u32::MAX as usize, len))
}

/// A packed witness.
#[derive(Debug, Clone, Copy)]
pub struct WitnessArrays<'a> {
    /// The values of the public inputs, ONE first.
    pub inputs: &'a [Scalar],
    /// Bit i of word i / 64 is set if auxiliary variable i is 1.
    pub bits: &'a [u64],
    /// Bit i of word i / 64 is set if auxiliary variable i is neither 0 nor 1.
    pub wide: &'a [u64],
    /// The values of the variables in `wide`, in order.
    pub wide_values: &'a [Scalar],
}

/// Lends the arrays of a witness.
pub trait WitnessSource: Send + Sync {
    /// Returns the arrays, which are equal at every call.
    fn arrays(&self) -> WitnessArrays<'_>;
}
