//! The plan of a device's memory for a circuit, computed without a device.

use super::DeviceOptions;
use crate::abi;
use crate::bindings as sys;
#[cfg(doc)]
use crate::status::Code;
use crate::status::Status;

/// One value for each query of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Queries<T> {
    /// Of the query over the quotient's coefficients.
    pub h: T,
    /// Of the query over the auxiliary variables.
    pub l: T,
    /// Of the query over the variables in A.
    pub a: T,
    /// Of the query over the variables in B, in G1.
    pub b_g1: T,
    /// Of the query over the variables in B, in G2.
    pub b_g2: T,
}

impl<T: Copy> Queries<T> {
    pub(crate) fn to_array(self) -> [T; sys::CUZK_QUERIES as usize] {
        [self.h, self.l, self.a, self.b_g1, self.b_g2]
    }

    fn from_array([h, l, a, b_g1, b_g2]: [T; sys::CUZK_QUERIES as usize]) -> Self {
        Self {
            h,
            l,
            a,
            b_g1,
            b_g2,
        }
    }
}

/// The sizes of a circuit. Its use of device memory depends on them only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitShape {
    /// The logarithm to base 2 of the domain's size.
    pub log_domain: u32,
    /// Constraints, without those that Groth16 appends.
    pub rows: u32,
    /// Public inputs, including ONE.
    pub num_inputs: u32,
    /// Auxiliary variables.
    pub num_aux: u32,
    /// The most auxiliary variables that are neither 0 nor 1.
    pub max_wide: u32,
    /// Public inputs in B.
    pub num_b_inputs: u32,
    /// Distinct coefficients.
    pub num_coefficients: u32,
    /// Parts of rows.
    pub num_parts: u32,
    /// Items of parts.
    pub num_items: u32,
    /// Shapes of rows.
    pub num_shapes: u32,
    /// Rows that are kept.
    pub num_unit_rows: u32,
    /// References to them.
    pub num_references: u32,
    /// Points in each query.
    pub num_points: Queries<u64>,
}

impl CircuitShape {
    pub(crate) fn raw(&self) -> sys::cuzk_circuit_shape {
        sys::cuzk_circuit_shape {
            log_domain: self.log_domain,
            rows: self.rows,
            num_inputs: self.num_inputs,
            num_aux: self.num_aux,
            max_wide: self.max_wide,
            num_b_inputs: self.num_b_inputs,
            num_coefficients: self.num_coefficients,
            num_parts: self.num_parts,
            num_items: self.num_items,
            num_shapes: self.num_shapes,
            num_unit_rows: self.num_unit_rows,
            num_references: self.num_references,
            num_points: self.num_points.to_array(),
        }
    }
}

/// The use of a device's memory for a circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DevicePlan {
    /// The sum of all bytes below that are on the device.
    pub total_bytes: u64,
    /// The memory of one worker: its witness and its results.
    pub worker_bytes: u64,
    /// The most that is uploaded for a partition: its witness, if each variable that
    /// may be is neither 0 nor 1.
    pub witness_bytes: u64,
    /// The compiled circuit and the roots of unity.
    pub circuit_bytes: u64,
    /// The memory in which the holder of the device's lock computes.
    pub region_bytes: u64,
    /// The points that stay on the device.
    pub resident_bytes: u64,
    /// Pinned host memory.
    pub pinned_bytes: u64,
    /// The number of points in G1 that are streamed at a time.
    pub piece_points: u64,
    /// True if the MSM in G2 runs on the device.
    pub b_g2_on_device: bool,
    /// The number of points at each query's start that stay on the device.
    pub resident_points: Queries<u64>,
}

impl DevicePlan {
    /// Plans a circuit of this shape on a device with `options.memory_bytes`. Needs no
    /// device.
    ///
    /// # Errors
    ///
    /// [`Code::CircuitTooLarge`], with the least memory that would suffice, or
    /// [`Code::InvalidArgument`].
    pub fn new(shape: &CircuitShape, options: &DeviceOptions) -> Result<Self, Status> {
        let plan = abi::device_plan(&shape.raw(), &options.raw())?;
        Ok(Self::of(&plan))
    }

    pub(super) fn of(plan: &sys::cuzk_device_plan) -> Self {
        Self {
            total_bytes: plan.total_bytes,
            worker_bytes: plan.worker_bytes,
            witness_bytes: plan.witness_bytes,
            circuit_bytes: plan.circuit_bytes,
            region_bytes: plan.region_bytes,
            resident_bytes: plan.resident_bytes,
            pinned_bytes: plan.pinned_bytes,
            piece_points: plan.piece_points,
            b_g2_on_device: plan.b_g2_on_device != 0,
            resident_points: Queries::from_array(plan.resident_points),
        }
    }
}
