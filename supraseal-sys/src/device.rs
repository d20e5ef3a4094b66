//! A proof's five sums on a device: circuits and their points go up once, then
//! a witness at a time. Not the assembly of the proof, and not the choice of a
//! device.
//!
//! A proof is staged (its witness goes up, outside the device's lock), run (the
//! device region, under the lock, while b_g2_msm runs on its pool) and finished
//! (b_g2_msm is waited for). It may be dropped after any of them.
//!
//! Invariants: what C++ is lent is kept alive by what holds C++'s object;
//! lengths are checked here, since C++ gets pointers.
#![allow(unsafe_code)] // Owns C++ objects that keep pointers to Rust's slices.

use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::time::Duration;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use blst::{blst_fr, blst_p1, blst_p2};
use blstrs::{G1Projective, G2Projective, Scalar};

use crate::bindings as sys;
use crate::checkpoint::checkpoint;
use crate::pool;
use crate::resources::GpuResources;
use crate::status::{Code, Status, check};

const _: () = assert!(size_of::<G1Projective>() == size_of::<blst_p1>());
const _: () = assert!(align_of::<G1Projective>() == align_of::<blst_p1>());
const _: () = assert!(size_of::<G2Projective>() == size_of::<blst_p2>());
const _: () = assert!(size_of::<Scalar>() == size_of::<blst_fr>());

/// Bytes of an uncompressed point in G1.
const G1_BYTES: usize = 96;
/// Bytes of an uncompressed point in G2.
const G2_BYTES: usize = 192;
/// As `cuda/kernels.hpp` has it.
const BLOCK_ROWS: usize = 256;

/// How many devices CUDA shows, after `CUDA_VISIBLE_DEVICES` and in its order.
///
/// # Errors
///
/// [`Code::NoCuda`] in a build without the feature `cuda`;
/// [`Code::DriverTooOld`].
pub fn device_count() -> Result<u32, Status> {
    let mut count = 0;
    // SAFETY: `count` is writable.
    check(&unsafe { sys::cuzk_device_count(&raw mut count) })?;
    Ok(count)
}

/// What a device is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The card's name.
    pub name: String,
    /// Its memory.
    pub memory_bytes: u64,
    /// What of it nobody uses now.
    pub free_bytes: u64,
    /// Compute capability, major and minor.
    pub compute: (u32, u32),
    /// Its multiprocessors.
    pub multiprocessors: u32,
    /// Their clock, kHz.
    pub clock_khz: u32,
    /// Bytes of its memory a second, at most; 0 where that is not known.
    pub memory_bandwidth: u64,
}

/// Where the sum over B in G2 runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BG2 {
    /// On the CPU, beside the device.
    Cpu,
    /// On the device.
    Device,
    /// On the device for circuits all of whose points stay there, those in G2
    /// too; on the CPU for others.
    #[default]
    Auto,
}

impl BG2 {
    /// Every place.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Device, Self::Auto];

    /// As a configuration spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Device => "device",
            Self::Auto => "auto",
        }
    }
}

/// How a device is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceOptions {
    /// The most device memory to take, all of it at once: less where less is
    /// free, after a reserve of 256 MiB for the driver and a stack for each thread
    /// that the card can run, 1 GiB on an H100. `None` for no limit.
    pub memory_bytes: Option<u64>,
    /// Proofs that may be between staging and the end of their device region.
    pub workers: u32,
    /// Where the sum in G2 runs.
    pub b_g2: BG2,
    /// How long the device may take before it is given up.
    pub stall_limit: Duration,
}

impl DeviceOptions {
    pub(crate) fn raw(&self) -> sys::cuzk_device_options {
        sys::cuzk_device_options {
            memory_bytes: self.memory_bytes.unwrap_or(0),
            workers: self.workers,
            b_g2: match self.b_g2 {
                BG2::Cpu => sys::CUZK_B_G2_CPU,
                BG2::Device => sys::CUZK_B_G2_DEVICE,
                BG2::Auto => sys::CUZK_B_G2_AUTO,
            }
            .cast_unsigned(),
            stall_limit_ms: u32::try_from(self.stall_limit.as_millis()).unwrap_or(u32::MAX),
        }
    }
}

/// One value for each query of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Queries<T> {
    /// Over the quotient's coefficients.
    pub h: T,
    /// Over the auxiliary variables.
    pub l: T,
    /// Over the variables in A.
    pub a: T,
    /// Over the variables in B, in G1.
    pub b_g1: T,
    /// The same in G2.
    pub b_g2: T,
}

impl<T: Copy> Queries<T> {
    fn to_array(self) -> [T; sys::CUZK_QUERIES as usize] {
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

/// The sizes of a circuit, on which its use of device memory depends alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitShape {
    /// The domain's size is two to this.
    pub log_domain: u32,
    /// Constraints, without those that Groth16 appends.
    pub rows: u32,
    /// Public inputs, with ONE.
    pub num_inputs: u32,
    /// Auxiliary variables.
    pub num_aux: u32,
    /// The most of them that are neither 0 nor 1.
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
    fn raw(&self) -> sys::cuzk_circuit_shape {
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

/// How the memory of a device is used for a circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DevicePlan {
    /// All of the following.
    pub total_bytes: u64,
    /// One worker's: its witness and its results.
    pub worker_bytes: u64,
    /// What goes up of a partition, at most: its witness, if every variable that
    /// may be is neither 0 nor 1.
    pub witness_bytes: u64,
    /// The compiled circuit and the roots of unity.
    pub circuit_bytes: u64,
    /// What the holder of the device's lock computes in.
    pub region_bytes: u64,
    /// The points that stay.
    pub resident_bytes: u64,
    /// Pinned host memory.
    pub pinned_bytes: u64,
    /// Points in G1 that are streamed at a time.
    pub piece_points: u64,
    /// Whether the sum in G2 runs on the device.
    pub b_g2_on_device: bool,
    /// The points at each query's start that stay.
    pub resident_points: Queries<u64>,
}

impl DevicePlan {
    /// The plan for a circuit of this shape on a device with
    /// `options.memory_bytes`. Needs no device.
    ///
    /// # Errors
    ///
    /// [`Code::CircuitTooLarge`], with the least that would do, or
    /// [`Code::InvalidArgument`].
    pub fn new(shape: &CircuitShape, options: &DeviceOptions) -> Result<Self, Status> {
        let mut plan = MaybeUninit::uninit();
        // SAFETY: all three are valid for the call; `plan` is written if the
        // status is OK.
        let plan = unsafe {
            check(&sys::cuzk_device_make_plan(
                &shape.raw(),
                &options.raw(),
                plan.as_mut_ptr(),
            ))?;
            plan.assume_init()
        };
        Ok(Self::of(&plan))
    }

    fn of(plan: &sys::cuzk_device_plan) -> Self {
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

/// A device that proves, with all the memory it will ever use.
pub struct DeviceProver {
    raw: NonNull<sys::cuzk_device>,
    resources: Arc<GpuResources>,
    /// What else must outlive the device.
    _keep: Option<Arc<dyn Send + Sync>>,
}

// SAFETY: the C++ object has no thread affinity; its locks do, and none is held
// between calls.
unsafe impl Send for DeviceProver {}
// SAFETY: its shared state is behind mutexes and atomics.
unsafe impl Sync for DeviceProver {}

impl fmt::Debug for DeviceProver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceProver").finish_non_exhaustive()
    }
}

impl DeviceProver {
    /// Opens a device, takes its memory and checks that its arithmetic is right.
    ///
    /// # Errors
    ///
    /// [`Code::NoCuda`], [`Code::NoDevice`], [`Code::DriverTooOld`],
    /// [`Code::NoKernelImage`], [`Code::DeviceOutOfMemory`] or another of a
    /// device.
    pub fn open(
        ordinal: u32,
        options: &DeviceOptions,
        resources: Arc<GpuResources>,
    ) -> Result<Self, Status> {
        // SAFETY: the function opens a device with what it is given.
        unsafe {
            Self::open_with(resources, None, |resources, out| {
                sys::cuzk_device_open(ordinal, &options.raw(), resources, out)
            })
        }
    }

    /// # Safety
    ///
    /// `open` must write a device if its status is OK, which may use `keep` and
    /// the resources as long as it lives.
    pub(crate) unsafe fn open_with(
        resources: Arc<GpuResources>,
        keep: Option<Arc<dyn Send + Sync>>,
        open: impl FnOnce(*mut sys::gpu_resources, *mut *mut sys::cuzk_device) -> sys::cuzk_status,
    ) -> Result<Self, Status> {
        // Pieces of points are brought by the pool's threads.
        pool::start_default()?;
        let mut raw = ptr::null_mut();
        check(&open(resources.raw(), &raw mut raw))?;
        // SAFETY: the caller promises that it was written; C++ `new` is not null.
        let raw = unsafe { NonNull::new_unchecked(raw) };
        Ok(Self {
            raw,
            resources,
            _keep: keep,
        })
    }

    /// What the device is, and how much of its memory is free now.
    ///
    /// # Errors
    ///
    /// A failing device.
    pub fn info(&self) -> Result<DeviceInfo, Status> {
        let mut info = MaybeUninit::uninit();
        // SAFETY: the device lives; `info` is written if the status is OK.
        let info = unsafe {
            check(&sys::cuzk_device_get_info(
                self.raw.as_ptr(),
                info.as_mut_ptr(),
            ))?;
            info.assume_init()
        };
        let name: Vec<u8> = info
            .name
            .iter()
            .flat_map(|char| char.to_ne_bytes())
            .take_while(|byte| *byte != 0)
            .collect();
        Ok(DeviceInfo {
            name: String::from_utf8_lossy(&name).into_owned(),
            memory_bytes: info.memory_bytes,
            free_bytes: info.free_bytes,
            compute: (info.compute_major, info.compute_minor),
            multiprocessors: info.multiprocessors,
            clock_khz: info.clock_khz,
            memory_bandwidth: info.memory_bandwidth,
        })
    }

    /// The device's lock and throttle.
    #[must_use]
    pub fn resources(&self) -> &Arc<GpuResources> {
        &self.resources
    }
}

impl Drop for DeviceProver {
    fn drop(&mut self) {
        // SAFETY: circuits and proofs keep the device, so none is left.
        unsafe { sys::cuzk_device_close(self.raw.as_ptr()) }
    }
}

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
    /// Three words each.
    pub references: &'a [u32],
    pub block_references: &'a [u32],
    /// Bit i of word i / 64: auxiliary i is in the query over A.
    pub a_aux: &'a [u64],
    /// The same of both queries over B.
    pub b_aux: &'a [u64],
    /// The inputs in the queries over B, ascending.
    pub b_inputs: &'a [u32],
    /// The points, uncompressed, as a parameter file has them.
    pub points: Queries<&'a [u8]>,
}

impl CircuitArrays<'_> {
    /// The sizes, if they agree with each other.
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

fn expect_len(name: &str, expected: usize, got: usize) -> Result<(), Status> {
    if got == expected {
        return Ok(());
    }
    Err(mismatch(name, expected, got))
}

/// How many entries of `each` words there are.
fn tuples(name: &str, words: usize, each: usize) -> Result<u32, Status> {
    expect_len(name, words.next_multiple_of(each), words)?;
    count(name, words / each)
}

fn count(name: &str, len: usize) -> Result<u32, Status> {
    u32::try_from(len).map_err(|_| mismatch(name, u32::MAX as usize, len))
}

/// Lends a circuit's arrays.
///
/// # Safety
///
/// Every index in the arrays is in range, as `cuda/kernels.hpp` says what it
/// indexes: the kernels do not check.
pub unsafe trait CircuitSource: Send + Sync {
    /// The arrays, the same at every call.
    fn arrays(&self) -> CircuitArrays<'_>;
}

/// A circuit on a device, shared by its proofs.
pub struct DeviceCircuit {
    raw: NonNull<sys::cuzk_circuit>,
    num_inputs: usize,
    device: Arc<DeviceProver>,
    /// C++ reads its arrays whenever the circuit comes to the device.
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
    /// Plans for a circuit. Its arrays go up with its first proof, and again
    /// when they had to make room for another circuit's meanwhile.
    ///
    /// # Errors
    ///
    /// [`Code::CircuitTooLarge`], [`Code::LengthMismatch`],
    /// [`Code::InvalidArgument`], or a device that failed before.
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
        let mut raw = ptr::null_mut();
        // SAFETY: the device lives. The arrays have the lengths of the shape,
        // and live as long as the source that they are borrowed from, of which
        // this value keeps a share: nobody can get it mutably meanwhile. Their
        // indices are in range as the source promises.
        check(&unsafe {
            sys::cuzk_circuit_create(device.raw.as_ptr(), &raw const data, &raw mut raw)
        })?;
        // SAFETY: C++ `new` does not return null.
        let raw = unsafe { NonNull::new_unchecked(raw) };
        Ok(Self {
            raw,
            num_inputs: shape.num_inputs as usize,
            device,
            _source: source,
        })
    }

    /// How the device's memory is used.
    #[must_use]
    pub fn plan(&self) -> DevicePlan {
        // SAFETY: the circuit lives.
        DevicePlan::of(&unsafe { sys::cuzk_circuit_plan(self.raw.as_ptr()) })
    }

    /// Its device.
    #[must_use]
    pub fn device(&self) -> &Arc<DeviceProver> {
        &self.device
    }

    /// Waits for a free worker, in the order of the calls, brings the circuit if
    /// it is not there, and sends a witness up. `pass` is asked every millisecond
    /// or so, on this thread; `false` stops it.
    ///
    /// # Errors
    ///
    /// [`Code::Stopped`], [`Code::LengthMismatch`], [`Code::InvalidPoint`] when
    /// the circuit's points come to the device and one is none, or a failing
    /// device.
    pub fn stage(
        self: &Arc<Self>,
        witness: Arc<dyn WitnessSource>,
        pass: &dyn Fn() -> bool,
    ) -> Result<StagedProof, Status> {
        let arrays = witness.arrays();
        expect_len("inputs", self.num_inputs, arrays.inputs.len())?;
        expect_len("wide", arrays.bits.len(), arrays.wide.len())?;
        let data = sys::cuzk_witness {
            inputs: arrays.inputs.as_ptr().cast(),
            bits: arrays.bits.as_ptr(),
            wide: arrays.wide.as_ptr(),
            num_words: arrays.bits.len(),
            wide_values: arrays.wide_values.as_ptr().cast(),
            num_wide: arrays.wide_values.len(),
        };
        let mut raw = ptr::null_mut();
        // SAFETY: the circuit lives, and the checkpoint as long as the call. The
        // arrays have the lengths given, and live as long as the source, of which
        // the proof keeps a share.
        check(&unsafe {
            sys::cuzk_prove_stage(
                self.raw.as_ptr(),
                &raw const data,
                checkpoint(&pass),
                &raw mut raw,
            )
        })?;
        // SAFETY: C++ `new` does not return null.
        let raw = unsafe { NonNull::new_unchecked(raw) };
        Ok(StagedProof(Proof {
            raw,
            _circuit: Arc::clone(self),
            _witness: witness,
        }))
    }
}

impl Drop for DeviceCircuit {
    fn drop(&mut self) {
        // SAFETY: proofs keep the circuit, so none is left.
        unsafe { sys::cuzk_circuit_destroy(self.raw.as_ptr()) }
    }
}

/// A packed witness.
#[derive(Debug, Clone, Copy)]
pub struct WitnessArrays<'a> {
    /// The values of the public inputs, ONE first.
    pub inputs: &'a [Scalar],
    /// Bit i of word i / 64: auxiliary i is 1.
    pub bits: &'a [u64],
    /// Or it is neither 0 nor 1.
    pub wide: &'a [u64],
    /// The values of those, in order.
    pub wide_values: &'a [Scalar],
}

/// Lends a witness's arrays.
pub trait WitnessSource: Send + Sync {
    /// The arrays, the same at every call.
    fn arrays(&self) -> WitnessArrays<'_>;
}

/// C++'s proof, in any state.
pub(crate) struct Proof {
    raw: NonNull<sys::cuzk_proof>,
    _circuit: Arc<DeviceCircuit>,
    _witness: Arc<dyn WitnessSource>,
}

// SAFETY: the C++ object has no thread affinity.
unsafe impl Send for Proof {}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proof").finish_non_exhaustive()
    }
}

impl Proof {
    /// C++ knows which step is next, and refuses any other.
    pub(crate) fn run(&self, b_g1: bool, pass: &dyn Fn() -> bool) -> Result<ProofFigures, Status> {
        let mut figures = MaybeUninit::uninit();
        // SAFETY: the proof lives, and the checkpoint as long as the call;
        // `figures` is written if the status is OK.
        let figures = unsafe {
            check(&sys::cuzk_prove_run(
                self.raw.as_ptr(),
                b_g1.into(),
                checkpoint(&pass),
                figures.as_mut_ptr(),
            ))?;
            figures.assume_init()
        };
        Ok(ProofFigures::of(&figures))
    }

    /// Likewise.
    pub(crate) fn finish(
        &self,
        pass: &dyn Fn() -> bool,
    ) -> Result<(DeviceSums, ProofFigures), Status> {
        let mut sums = MaybeUninit::<sys::cuzk_sums>::uninit();
        let mut figures = MaybeUninit::uninit();
        // SAFETY: as above; both are written if the status is OK.
        let (sums, figures) = unsafe {
            check(&sys::cuzk_prove_finish(
                self.raw.as_ptr(),
                checkpoint(&pass),
                sums.as_mut_ptr(),
                figures.as_mut_ptr(),
            ))?;
            (sums.assume_init(), figures.assume_init())
        };
        let sums = DeviceSums {
            h: g1(sums.h),
            l: g1(sums.l),
            a: g1(sums.a),
            b_g1: g1(sums.b_g1),
            b_g2: g2(sums.b_g2),
        };
        Ok((sums, ProofFigures::of(&figures)))
    }
}

impl Drop for Proof {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once; circuit and witness, which it
        // uses until then, are dropped after this.
        unsafe { sys::cuzk_proof_destroy(self.raw.as_ptr()) }
    }
}

/// A proof whose witness is on its way to the device.
#[derive(Debug)]
#[must_use = "it occupies a worker of its device"]
pub struct StagedProof(Proof);

impl StagedProof {
    /// Runs the device region under the device's lock, and starts b_g2_msm. The
    /// sum over B in G1 is made if `b_g1`; its points are streamed. `pass` is
    /// asked as in [`DeviceCircuit::stage`], while the lock is waited for, too.
    ///
    /// # Errors
    ///
    /// [`Code::Stopped`], [`Code::InvalidPoint`], [`Code::DeviceLost`],
    /// [`Code::DeviceStalled`] or another failure of the device.
    pub fn run(self, b_g1: bool, pass: &dyn Fn() -> bool) -> Result<RanProof, Status> {
        let figures = self.0.run(b_g1, pass)?;
        Ok(RanProof {
            proof: self.0,
            figures,
        })
    }

    #[cfg(feature = "test-hooks")]
    pub(crate) fn proof(&self) -> &Proof {
        &self.0
    }
}

/// A proof whose device region is over.
#[derive(Debug)]
#[must_use = "its sums are not taken"]
pub struct RanProof {
    proof: Proof,
    figures: ProofFigures,
}

/// The five sums of a proof, without the key's own terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceSums {
    /// Over H.
    pub h: G1Projective,
    /// Over L.
    pub l: G1Projective,
    /// Over A.
    pub a: G1Projective,
    /// Over B, in G1; the identity if it was not wanted.
    pub b_g1: G1Projective,
    /// Over B, in G2.
    pub b_g2: G2Projective,
}

/// What a proof took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProofFigures {
    /// Waiting for a free worker, and for a circuit to come to the device.
    pub worker_wait_ms: f64,
    /// Waiting for the device's lock.
    pub lock_wait_ms: f64,
    /// When the lock was taken.
    pub locked_at: Instant,
    /// How long it was held: no two proofs of a device at once.
    pub region: Duration,
    /// Evaluation and transforms, on the device.
    pub quotient_ms: f64,
    /// Sums, on the device.
    pub sums_ms: f64,
    /// The sum in G2 on the CPU; 0 where it ran on the device.
    pub b_g2_ms: f64,
    /// The witness.
    pub uploaded_bytes: u64,
    /// Points that are not resident.
    pub streamed_bytes: u64,
}

/// A time of C++'s clock. Both languages read the machine's monotonic one, so that
/// what they count from differs by one number, which is taken once a process: what
/// was one after the other stays so.
fn instant(cpp_ns: u64) -> Instant {
    static READ: OnceLock<(Instant, u64)> = OnceLock::new();
    // SAFETY: no pointers are involved.
    let read = || (Instant::now(), unsafe { sys::cuzk_clock_ns() });
    let &(instant, ns) = READ.get_or_init(read);
    let since = Duration::from_nanos(cpp_ns.saturating_sub(ns));
    let before = Duration::from_nanos(ns.saturating_sub(cpp_ns));
    (instant + since).checked_sub(before).unwrap_or(instant)
}

impl ProofFigures {
    fn of(figures: &sys::cuzk_proof_figures) -> Self {
        Self {
            worker_wait_ms: figures.worker_wait_ms,
            lock_wait_ms: figures.lock_wait_ms,
            locked_at: instant(figures.locked_at_ns),
            region: Duration::from_nanos(figures.region_ns),
            quotient_ms: figures.quotient_ms,
            sums_ms: figures.sums_ms,
            b_g2_ms: figures.b_g2_ms,
            uploaded_bytes: figures.uploaded_bytes,
            streamed_bytes: figures.streamed_bytes,
        }
    }
}

impl RanProof {
    /// What it took so far.
    #[must_use]
    pub fn figures(&self) -> &ProofFigures {
        &self.figures
    }

    /// Waits for b_g2_msm, asking `pass` meanwhile.
    ///
    /// # Errors
    ///
    /// [`Code::Stopped`], or what b_g2_msm failed with, such as
    /// [`Code::InvalidPoint`].
    pub fn finish(self, pass: &dyn Fn() -> bool) -> Result<(DeviceSums, ProofFigures), Status> {
        self.proof.finish(pass)
    }

    #[cfg(feature = "test-hooks")]
    pub(crate) fn proof(&self) -> &Proof {
        &self.proof
    }
}

fn g1(point: blst_p1) -> G1Projective {
    // SAFETY: blstrs's type is a transparent wrapper of blst's.
    unsafe { core::mem::transmute(point) }
}

fn g2(point: blst_p2) -> G2Projective {
    // SAFETY: as above.
    unsafe { core::mem::transmute(point) }
}
