//! A circuit with its parameters' points, as C++ takes them.
//!
//! Invariants: the lengths agree with each other. Memory that is lent to C++ lives as
//! long as the C++ object.
#![allow(unsafe_code)] // Owns a C++ object that keeps pointers to Rust's slices.

use core::fmt;
use core::ptr::NonNull;
use std::sync::Arc;

use blst::blst_fr;
use blstrs::Scalar;

use super::{CircuitShape, DevicePlan, DeviceProver, Queries};
use crate::bindings as sys;
use crate::call::made;
use crate::status::{Code, Status};

const _: () = assert!(size_of::<Scalar>() == size_of::<blst_fr>());
const _: () = assert!(align_of::<Scalar>() == align_of::<blst_fr>());

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

pub(super) fn expect_len(name: &str, expected: usize, got: usize) -> Result<(), Status> {
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

/// Lends the arrays of a circuit.
///
/// # Safety
///
/// All indices in the arrays must be in the range that `cuda/kernels.hpp` states. The
/// kernels do not check them.
pub unsafe trait CircuitSource: Send + Sync {
    /// Returns the arrays, which are equal at every call.
    fn arrays(&self) -> CircuitArrays<'_>;
}

/// A circuit on a device, shared by its proofs.
pub struct DeviceCircuit {
    pub(super) raw: NonNull<sys::cuzk_circuit>,
    pub(super) num_inputs: usize,
    pub(super) domain_len: usize,
    device: Arc<DeviceProver>,
    /// C++ reads its arrays whenever the circuit is uploaded to the device.
    _source: Arc<dyn CircuitSource>,
}

// SAFETY: as for the device; the source is Send and Sync.
unsafe impl Send for DeviceCircuit {}
// SAFETY: likewise.
unsafe impl Sync for DeviceCircuit {}

impl fmt::Debug for DeviceCircuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceCircuit")
            .field("plan", &self.plan())
            .finish_non_exhaustive()
    }
}

impl DeviceCircuit {
    /// Plans the memory for a circuit. Its arrays are uploaded with its first proof.
    /// They are uploaded again if they had to make room for another circuit since.
    ///
    /// # Errors
    ///
    /// [`Code::CircuitTooLarge`], [`Code::LengthMismatch`], [`Code::InvalidArgument`],
    /// or an earlier failure of the device.
    pub fn new(device: Arc<DeviceProver>, source: Arc<dyn CircuitSource>) -> Result<Self, Status> {
        let arrays = source.arrays();
        let shape = arrays.shape()?;
        let data = sys::cuzk_circuit_data {
            shape: shape.raw(),
            coefficients: arrays.coefficients.as_ptr().cast(),
            integers: arrays.integers.as_ptr(),
            part_ends: arrays.part_ends.as_ptr(),
            items: arrays.items.as_ptr(),
            shapes: arrays.shapes.as_ptr(),
            unit_rows: arrays.unit_rows.as_ptr(),
            references: arrays.references.as_ptr(),
            block_references: arrays.block_references.as_ptr(),
            a_aux: arrays.a_aux.as_ptr(),
            b_aux: arrays.b_aux.as_ptr(),
            b_inputs: arrays.b_inputs.as_ptr(),
            points: arrays.points.to_array().map(<[u8]>::as_ptr),
        };
        // SAFETY: the device lives. The arrays have the lengths of the shape. They live
        // as long as the source that they are borrowed from. This value keeps a share
        // of the source, so nobody can get it mutably in the meantime. Their indices
        // are in range, as the source promises.
        let raw = unsafe {
            made(|out| sys::cuzk_circuit_create(device.raw.as_ptr(), &raw const data, out))?
        };
        Ok(Self {
            raw,
            num_inputs: shape.num_inputs as usize,
            domain_len: 1 << shape.log_domain,
            device,
            _source: source,
        })
    }

    /// Returns the plan of the device's memory.
    #[must_use]
    pub fn plan(&self) -> DevicePlan {
        // SAFETY: the circuit lives.
        DevicePlan::of(&unsafe { sys::cuzk_circuit_plan(self.raw.as_ptr()) })
    }

    /// Returns its device.
    #[must_use]
    pub fn device(&self) -> &Arc<DeviceProver> {
        &self.device
    }
}

impl Drop for DeviceCircuit {
    fn drop(&mut self) {
        // SAFETY: proofs keep the circuit alive, so none of them is left.
        unsafe { sys::cuzk_circuit_destroy(self.raw.as_ptr()) }
    }
}
