//! The memory on the host that a partition holds, from its circuit's dimensions.
//!
//! It is reserved before it is allocated; a test compares it with the memory that a
//! process is seen to use. Not files that are mapped. The invariant: a backend charges
//! what its own code takes, so that a GPU's partition does not pay for the workspace of a
//! CPU's.

mod batch;
mod device;
mod reads;

use std::io;

use blstrs::Scalar;
use cuzk_kernels::Isa;
use cuzk_kernels::msm::{MsmMemory, MsmTermSize, Shape};
use cuzk_kernels::ntt::Domain;
use cuzk_memory::{ArrayMemory, Extent, FreeList, VirtualExtent};

pub use self::batch::batch_footprint;
pub(super) use self::device::{BG2Workspace, DeviceWorkspace};
pub use self::reads::PointsRead;
use crate::circuit_sizes::CircuitSizes;
use crate::params::Shapes;

/// A thread's stack, and what an allocator keeps for it beside what was asked for: some
/// 0.3 MB a thread were measured on 16.
const THREAD_BYTES: u64 = 1 << 18;

/// Memory of the writer of a witness on the heap, in sizes of the parts that it has at once.
/// It is the hashed data, and the part of it that the heaps of the threads keep.
const HEAP_COPIES: u64 = 2;

/// The most that reading or compiling a circuit holds: 52 MB were measured for the
/// largest.
pub const READING_BYTES: u64 = 64 << 20;

const SCALAR_BYTES: u64 = size_of::<Scalar>() as u64;

/// The memory on the host that a partition holds while a backend proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// The most that it holds at once, from its witness to its proof, in bytes.
    pub peak_bytes: u64,
    /// The most that it holds at once after its device region, in bytes.
    pub finish_bytes: u64,
    /// The blocks that the memory pool keeps of it for the next partition, in bytes each.
    pub kept_blocks: Vec<usize>,
}

impl Footprint {
    /// Returns the footprint of a partition that holds so many bytes more while it is
    /// synthesized.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Self {
        Self {
            peak_bytes: self.peak_bytes + bytes,
            ..self
        }
    }

    /// Returns the larger of both in every figure, for a partition that either backend may
    /// prove.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        let kept = |footprint: &Self| footprint.kept_blocks.iter().sum::<usize>();
        Self {
            peak_bytes: self.peak_bytes.max(other.peak_bytes),
            finish_bytes: self.finish_bytes.max(other.finish_bytes),
            kept_blocks: if kept(&self) >= kept(&other) {
                self.kept_blocks
            } else {
                other.kept_blocks
            },
        }
    }
}

/// The workspace of a partition that the CPU proves: its instructions and threads decide
/// what the transforms and the MSMs hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuWorkspace {
    /// The instructions of the kernels.
    pub isa: Isa,
    /// The threads of synthesis, of the transforms, and of the MSMs in G1.
    pub threads: usize,
    /// The threads of the MSM in G2.
    pub b_g2_threads: usize,
}

impl CpuWorkspace {
    /// Returns the footprint of a partition. `shapes` are those of the multiples that its
    /// parameters have.
    #[must_use]
    pub fn footprint(&self, circuit: &CircuitSizes, shapes: &Shapes) -> Footprint {
        Footprint {
            peak_bytes: partition_bytes(circuit, self, shapes),
            finish_bytes: finish_bytes(circuit, self, shapes),
            kept_blocks: replay(circuit, self, shapes).into_blocks(),
        }
    }

    /// Returns the bytes that the threads hold beside what the kernels say.
    fn threads_bytes(&self) -> u64 {
        threads_bytes(self.threads.max(self.b_g2_threads))
    }

    /// Returns the memory of the MSMs in G1, which run one after the other: over the
    /// quotient and L as one, and over A.
    fn g1(&self, circuit: &CircuitSizes, shapes: &Shapes) -> [MsmMemory; 2] {
        let quotient = MsmTermSize {
            wide: circuit.domain_len(),
            is_plain: true,
            multiples: shapes.h,
        };
        let wide = circuit.wide();
        let [l, a] = [
            wide_terms(wide.all, shapes.l),
            wide_terms(wide.in_a, shapes.a),
        ];
        let sum = |parts: &[MsmTermSize]| MsmMemory::of_g1(self.isa, parts, self.threads);
        [sum(&[quotient, l]), sum(&[a])]
    }

    fn g2(&self, circuit: &CircuitSizes, shapes: &Shapes) -> MsmMemory {
        let terms = wide_terms(circuit.wide().in_b, shapes.b_g2);
        MsmMemory::of_g2(self.isa, &[terms], self.b_g2_threads)
    }

    /// Returns the memory of the transforms' threads, in bytes.
    fn rows_bytes(&self, circuit: &CircuitSizes) -> usize {
        let log_size = circuit.domain_len().ilog2();
        Domain::rows_bytes(self.isa, log_size, self.threads)
    }

    /// Returns the memory on the heap of the MSM that has most there, in bytes.
    fn heap_bytes(&self, circuit: &CircuitSizes, shapes: &Shapes) -> u64 {
        let [h_and_l, a] = self.g1(circuit, shapes);
        let sums = [h_and_l, a, self.g2(circuit, shapes)];
        sums.map(|sum| sum.heap_bytes as u64)
            .into_iter()
            .max()
            .unwrap_or(0)
    }
}

/// A pool's blocks without the blocks: what it maps when it is asked for some, and
/// keeps those that come back.
#[derive(Default)]
struct Replay {
    free: FreeList<VirtualExtent>,
    /// The sizes of the mapped blocks, in bytes.
    mapped: Vec<usize>,
    /// The most that was mapped at once.
    mapped_bytes_max: usize,
}

impl Replay {
    /// Takes blocks all of which are held at the same time.
    fn take(&mut self, blocks: &[usize]) -> Vec<VirtualExtent> {
        // Larger than any memory, it is not mapped.
        let take = |bytes: &usize| self.take_one(*bytes).ok();
        blocks.iter().filter_map(take).collect()
    }

    fn take_one(&mut self, bytes: usize) -> io::Result<VirtualExtent> {
        let mapped = &mut self.mapped;
        let map = |bytes| {
            mapped.push(bytes);
            Ok(VirtualExtent::whole(mapped.len() - 1, bytes))
        };
        let taken = self.free.take_or_map(bytes, map)?;
        self.unmap(taken.given_up);
        let mapped_bytes = self.mapped.iter().sum();
        self.mapped_bytes_max = self.mapped_bytes_max.max(mapped_bytes);
        Ok(taken.extent)
    }

    fn give_back(&mut self, blocks: impl IntoIterator<Item = VirtualExtent>) {
        for block in blocks {
            let unused = self.free.give_back(block);
            self.unmap(unused);
        }
    }

    fn unmap(&mut self, places: Vec<VirtualExtent>) {
        for place in places {
            if let Some(mapped) = self.mapped.get_mut(place.mapping()) {
                *mapped -= place.bytes();
            }
        }
    }

    /// Returns the sizes of the blocks that are mapped in the end, in bytes.
    fn into_blocks(self) -> Vec<usize> {
        self.mapped.into_iter().filter(|bytes| *bytes > 0).collect()
    }
}

fn threads_bytes(threads: usize) -> u64 {
    threads as u64 * THREAD_BYTES
}

/// Returns the terms of an MSM over the witness, or over a query of it.
fn wide_terms(wide: usize, multiples: Option<Shape>) -> MsmTermSize {
    MsmTermSize {
        wide,
        is_plain: false,
        multiples,
    }
}

/// The sizes of a packed witness, of a part of one, or of a query of one.
#[derive(Clone, Copy)]
struct Packed {
    variables: usize,
    /// Those that are neither 0 nor 1, and all public inputs.
    wide: usize,
}

impl Packed {
    fn witness(circuit: &CircuitSizes) -> Self {
        Self::of(circuit, circuit.num_aux, circuit.wide().all)
    }

    /// The parts that so many threads have of a witness at once.
    fn parts(circuit: &CircuitSizes, threads: usize) -> Self {
        let variables = circuit.variables_apart(threads);
        Self::of(circuit, variables, circuit.wide().all.min(variables))
    }

    fn of_a(circuit: &CircuitSizes) -> Self {
        let variables = circuit.variables.a_aux as usize;
        Self::of(circuit, variables, circuit.wide().in_a)
    }

    fn of_b(circuit: &CircuitSizes) -> Self {
        let variables = circuit.variables.b_aux as usize;
        Self::of(circuit, variables, circuit.wide().in_b)
    }

    fn of(circuit: &CircuitSizes, variables: usize, wide: usize) -> Self {
        let wide = circuit.num_inputs + wide;
        Self { variables, wide }
    }

    /// Returns the bytes of each vector: the bits, the marks of wide variables, the ranks and
    /// the values.
    fn arrays(self) -> [usize; 4] {
        let words = self.variables / 64 + 2;
        let [bits, ranks] = [size_of::<u64>(), size_of::<u32>()].map(|bytes| words * bytes);
        [bits, bits, ranks, self.wide * size_of::<Scalar>()]
    }

    fn bytes(self) -> u64 {
        self.arrays().iter().sum::<usize>() as u64
    }

    /// Returns the bytes of each vector that the pool lends.
    fn blocks(self) -> Vec<usize> {
        let arrays = self.arrays().into_iter();
        arrays
            .filter(|bytes| *bytes >= ArrayMemory::LARGE_BYTES)
            .collect()
    }
}

/// Returns the bytes on the heap while so many threads write a witness.
fn writing_bytes(circuit: &CircuitSizes, threads: usize) -> u64 {
    HEAP_COPIES * Packed::parts(circuit, threads).bytes()
}

/// Returns the most that proving a partition holds at once, in bytes: the witness, what is
/// made of it, and what the pool maps. `shapes` are those of the multiples that its
/// parameters have.
#[must_use]
pub fn partition_bytes(circuit: &CircuitSizes, workspace: &CpuWorkspace, shapes: &Shapes) -> u64 {
    let heap_bytes = writing_bytes(circuit, workspace.threads)
        + workspace.threads_bytes()
        + workspace.heap_bytes(circuit, shapes);
    pool_bytes(circuit, workspace, shapes) + heap_bytes
}

/// Returns the bytes that the pool maps for partitions of a circuit one after the other. The
/// blocks are for the witness, the vectors over the domain, the queries and the MSMs.
/// Blocks that were given back before are used again where they suit.
#[must_use]
pub fn pool_bytes(circuit: &CircuitSizes, workspace: &CpuWorkspace, shapes: &Shapes) -> u64 {
    replay(circuit, workspace, shapes).mapped_bytes_max as u64
}

/// The host's share of a partition that a device proves: its witness, and where they are
/// made here the vectors A and B on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynthesisShare {
    /// The threads of synthesis.
    pub threads: usize,
    /// True if A and B are evaluated on the host.
    pub evaluates: bool,
}

impl SynthesisShare {
    /// Returns the footprint of a partition of which a device needs nothing else on the
    /// host.
    #[must_use]
    pub fn footprint(self, circuit: &CircuitSizes) -> Footprint {
        let mut pool = Replay::default();
        self.replay(circuit, &mut pool);
        self.footprint_of(circuit, pool)
    }

    /// Takes the blocks of the witness, and of the vectors if they are made here.
    fn replay(self, circuit: &CircuitSizes, pool: &mut Replay) {
        replay_witness(circuit, self.threads, pool);
        if self.evaluates {
            let vector_bytes = circuit.domain_len() * size_of::<Scalar>();
            pool.take(&[vector_bytes; 2]);
        }
    }

    /// Returns the footprint of a partition that took its blocks from `pool`.
    fn footprint_of(self, circuit: &CircuitSizes, pool: Replay) -> Footprint {
        let heap_bytes = writing_bytes(circuit, self.threads) + threads_bytes(self.threads);
        Footprint {
            peak_bytes: pool.mapped_bytes_max as u64 + heap_bytes,
            // The witness is lent to the device until the proof ends.
            finish_bytes: Packed::witness(circuit).bytes() + threads_bytes(self.threads),
            kept_blocks: pool.into_blocks(),
        }
    }
}

/// Takes a witness's blocks, and what is given back when its parts are one.
fn replay_witness(circuit: &CircuitSizes, threads: usize, pool: &mut Replay) -> Vec<VirtualExtent> {
    let witness = pool.take(&Packed::witness(circuit).blocks());
    let parts = pool.take(&Packed::parts(circuit, threads).blocks());
    pool.give_back(parts);
    witness
}

fn replay(circuit: &CircuitSizes, workspace: &CpuWorkspace, shapes: &Shapes) -> Replay {
    let vector_bytes = circuit.domain_len() * size_of::<Scalar>();
    let mut pool = Replay::default();
    let witness = replay_witness(circuit, workspace.threads, &mut pool);
    let [a, b, scratch] = [(); 3].map(|()| pool.take(&[vector_bytes]));
    let rows = Some(workspace.rows_bytes(circuit)).filter(|bytes| *bytes > 0);
    let rows = pool.take(rows.as_slice());
    pool.give_back([rows, b, scratch].into_iter().flatten());
    let [h_and_l, of_a] = workspace.g1(circuit, shapes);
    let sum = pool.take(&h_and_l.blocks);
    pool.give_back(sum);
    let query = pool.take(&Packed::of_a(circuit).blocks());
    let sum = pool.take(&of_a.blocks);
    pool.give_back([query, sum].into_iter().flatten());
    let query = pool.take(&Packed::of_b(circuit).blocks());
    pool.give_back([a, witness].into_iter().flatten());
    pool.take(&workspace.g2(circuit, shapes).blocks);
    drop(query);
    pool
}

/// Returns the bytes that a partition holds after its device region: the scalars of the B
/// query, and the workspace of the MSM over them.
fn finish_bytes(circuit: &CircuitSizes, workspace: &CpuWorkspace, shapes: &Shapes) -> u64 {
    let sum = workspace.g2(circuit, shapes);
    let sum_bytes = sum.blocks.iter().sum::<usize>() + sum.heap_bytes;
    Packed::of_b(circuit).bytes() + sum_bytes as u64 + workspace.threads_bytes()
}

/// Returns the bytes of the vectors over the domain: a, b and the scratch of the quotient.
#[must_use]
pub fn buffer_bytes(circuit: &CircuitSizes) -> u64 {
    3 * circuit.domain_len() as u64 * SCALAR_BYTES
}

/// Returns what a circuit holds for as long as it is kept, in bytes: its compiled form, the
/// densities, and its domain's table of twiddles.
#[must_use]
pub fn circuit_bytes(circuit: &CircuitSizes) -> u64 {
    let densities = 3 * (circuit.num_inputs + circuit.num_aux) / 8;
    let twiddles = circuit.domain_len() / 2 * size_of::<Scalar>();
    (circuit.resident_bytes + densities + twiddles) as u64
}
