//! The objects of C++ on a device: the device, a circuit and a proof, with their calls.
//!
//! Not the order of a proof's steps, which C++ checks. Invariants: an object is destroyed before
//! the values that it uses, of which it keeps shares. Lengths are compared here, since C++ gets
//! pointers.
#![allow(unsafe_code)] // Owns C++ objects that keep pointers to Rust's slices.

use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use std::sync::Arc;

use cuzk_memory::Checkpoint;

use super::DeviceOptions;
use super::arrays::{CircuitArrays, WitnessSource, expect_len};
use super::intermediates::RawIntermediates;
use super::plan::CircuitShape;
use crate::abi::{callback, made, written};
use crate::bindings as sys;
use crate::pool;
use crate::resources::GpuResources;
use crate::status::Status;

/// A device with its memory.
pub(crate) struct Device {
    raw: NonNull<sys::cuzk_device>,
    resources: Arc<GpuResources>,
    _keep: Option<Arc<dyn Send + Sync>>,
}

// SAFETY: the C++ object has no thread affinity. Its locks have, but none is held
// between calls.
unsafe impl Send for Device {}
// SAFETY: its shared state is behind mutexes and atomics.
unsafe impl Sync for Device {}

impl Device {
    /// Opens a CUDA device.
    pub(crate) fn open(
        ordinal: u32,
        options: &DeviceOptions,
        resources: Arc<GpuResources>,
    ) -> Result<Self, Status> {
        // SAFETY: the function opens a device with these arguments.
        unsafe {
            Self::open_with(resources, None, |resources, out| {
                sys::cuzk_device_open(ordinal, &options.raw(), resources, out)
            })
        }
    }

    /// Opens a device with `open`.
    ///
    /// # Safety
    ///
    /// `open` must write a device if its status is OK. The device may use `keep` and
    /// the resources as long as it lives.
    pub(crate) unsafe fn open_with(
        resources: Arc<GpuResources>,
        keep: Option<Arc<dyn Send + Sync>>,
        open: impl FnOnce(*mut sys::gpu_resources, *mut *mut sys::cuzk_device) -> sys::cuzk_status,
    ) -> Result<Self, Status> {
        // The pool's threads copy pieces of points.
        pool::start_default()?;
        // SAFETY: the caller promises that it makes a device.
        let raw = unsafe { made(|out| open(resources.raw(), out))? };
        Ok(Self {
            raw,
            resources,
            _keep: keep,
        })
    }

    pub(crate) fn info(&self) -> Result<sys::cuzk_device_info, Status> {
        // SAFETY: the device lives; the info is written if the status is OK.
        unsafe { written(|out| sys::cuzk_device_get_info(self.raw.as_ptr(), out)) }
    }

    pub(crate) fn resources(&self) -> &Arc<GpuResources> {
        &self.resources
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: circuits and proofs keep the device alive, so none of them is left.
        unsafe { sys::cuzk_device_close(self.raw.as_ptr()) }
    }
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

/// A circuit on a device.
pub(crate) struct Circuit {
    raw: NonNull<sys::cuzk_circuit>,
    shape: CircuitShape,
    _device: Arc<Device>,
    /// C++ reads its arrays whenever the circuit is uploaded to the device.
    _source: Arc<dyn CircuitSource>,
}

// SAFETY: as for the device; the source is Send and Sync.
unsafe impl Send for Circuit {}
// SAFETY: likewise.
unsafe impl Sync for Circuit {}

impl Circuit {
    pub(crate) fn new(device: Arc<Device>, source: Arc<dyn CircuitSource>) -> Result<Self, Status> {
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
            shape,
            _device: device,
            _source: source,
        })
    }

    pub(crate) fn plan(&self) -> sys::cuzk_device_plan {
        // SAFETY: the circuit lives.
        unsafe { sys::cuzk_circuit_plan(self.raw.as_ptr()) }
    }

    pub(crate) fn domain_len(&self) -> usize {
        1 << self.shape.log_domain
    }
}

impl Drop for Circuit {
    fn drop(&mut self) {
        // SAFETY: proofs keep the circuit alive, so none of them is left.
        unsafe { sys::cuzk_circuit_destroy(self.raw.as_ptr()) }
    }
}

/// A proof, in any state.
pub(crate) struct Proof {
    raw: NonNull<sys::cuzk_proof>,
    circuit: Arc<Circuit>,
    _witness: Arc<dyn WitnessSource>,
}

// SAFETY: the C++ object has no thread affinity.
unsafe impl Send for Proof {}

impl Proof {
    /// Uploads a witness.
    pub(crate) fn stage(
        circuit: Arc<Circuit>,
        witness: Arc<dyn WitnessSource>,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Self, Status> {
        let arrays = witness.arrays();
        let num_inputs = circuit.shape.num_inputs as usize;
        expect_len("inputs", num_inputs, arrays.inputs.len())?;
        expect_len("wide", arrays.bits.len(), arrays.wide.len())?;
        let data = sys::cuzk_witness {
            inputs: arrays.inputs.as_ptr().cast(),
            bits: arrays.bits.as_ptr(),
            wide: arrays.wide.as_ptr(),
            num_words: arrays.bits.len(),
            wide_values: arrays.wide_values.as_ptr().cast(),
            num_wide: arrays.wide_values.len(),
        };
        let (raw_circuit, checkpoint) = (circuit.raw.as_ptr(), callback(checkpoint));
        // SAFETY: the circuit lives, and the checkpoint lives as long as the call. The
        // arrays have the given lengths. They live as long as the source, of which the
        // proof keeps a share.
        let raw = unsafe {
            made(|out| sys::cuzk_prove_stage(raw_circuit, &raw const data, checkpoint, out))?
        };
        Ok(Self {
            raw,
            circuit,
            _witness: witness,
        })
    }

    /// Runs the proof. C++ knows the next step, and refuses any other.
    pub(crate) fn run(
        &self,
        [b_g1, host_b_g2]: [bool; 2],
        intermediates: Option<&mut RawIntermediates>,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<sys::cuzk_proof_figures, Status> {
        let (proof, checkpoint) = (self.raw.as_ptr(), callback(checkpoint));
        let [b_g1, host_b_g2] = [b_g1, host_b_g2].map(u32::from);
        let lent = intermediates.map(RawIntermediates::lend);
        if let Some(lent) = &lent {
            expect_len("intermediates", self.circuit.domain_len(), lent.len)?;
        }
        let lent = lent.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the proof lives. The checkpoint lives as long as the call. So do the
        // vectors, which have the stated length if they are not null. The figures are
        // written if the status is OK.
        unsafe { written(|out| sys::cuzk_prove_run(proof, b_g1, host_b_g2, lent, checkpoint, out)) }
    }

    /// Finishes the proof, under the same condition.
    pub(crate) fn finish(
        &self,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<(sys::cuzk_sums, sys::cuzk_proof_figures), Status> {
        let (proof, checkpoint) = (self.raw.as_ptr(), callback(checkpoint));
        let mut figures = MaybeUninit::uninit();
        let figures_out = figures.as_mut_ptr();
        // SAFETY: as above; both are written if the status is OK.
        unsafe {
            let sums = written(|out| sys::cuzk_prove_finish(proof, checkpoint, out, figures_out))?;
            Ok((sums, figures.assume_init()))
        }
    }
}

impl Drop for Proof {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once. Circuit and witness, which it uses
        // until then, are dropped after this.
        unsafe { sys::cuzk_proof_destroy(self.raw.as_ptr()) }
    }
}
