//! How much memory a partition needs, from its circuit's dimensions.
//!
//! What the stages hold at once on the CPU, so that it can be reserved before it is
//! allocated; a test holds it against what a process is seen to use. A device needs
//! less. Files that are mapped are not counted here.

use std::io;

use blstrs::Scalar;
use cuzk_kernels::Isa;
use cuzk_kernels::msm::{Shape, TermCount, g1_sum_blocks, g2_sum_blocks};
use cuzk_pce::WitnessMemory;

use crate::circuit::Circuit;
use crate::config::Config;
use crate::memory::free::{Extent, FreeList, Place};
use crate::params::Shapes;

/// A thread's stack, what it needs to sum points, and what an allocator keeps for it
/// beside what was asked for.
const THREAD_BYTES: u64 = 1 << 20;

/// The same where bases have multiples, of which more fall to a bucket at once; with what
/// telling which bases have them leaves on the heap. 4 MB more were measured on two
/// threads.
const THREAD_BYTES_WITH_MULTIPLES: u64 = 3 << 20;

/// So many times as large as a packed witness is what its writer hashes, and what of it
/// the heaps of the writer's threads keep.
const HEAP_COPIES: u64 = 2;

/// What reading or compiling a circuit holds at most: 52 MB were measured for
/// the largest.
pub const READING_BYTES: u64 = 64 << 20;

const SCALAR_BYTES: u64 = size_of::<Scalar>() as u64;

/// How the sums run, which decides what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Their instructions.
    pub isa: Isa,
    /// Threads of those in G1.
    pub threads: usize,
    /// Threads of the one in G2.
    pub b_g2_threads: usize,
}

impl Sums {
    /// As the configuration has them run on the CPU.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self {
            isa: config.cpu.isa,
            threads: config.synthesis.threads,
            b_g2_threads: config.gpus.gpu_threads,
        }
    }

    fn threads_bytes(&self, shapes: &Shapes) -> u64 {
        let bytes = if *shapes == Shapes::default() {
            THREAD_BYTES
        } else {
            THREAD_BYTES_WITH_MULTIPLES
        };
        self.threads.max(self.b_g2_threads) as u64 * bytes
    }

    /// The blocks of the sums in G1, one after the other: over the quotient and L as
    /// one, and over A.
    fn g1_blocks(&self, circuit: &Circuit, shapes: &Shapes) -> [Vec<usize>; 2] {
        let quotient = TermCount {
            wide: circuit.domain_len(),
            is_plain: true,
            multiples: shapes.h,
        };
        let [l, a] = [shapes.l, shapes.a].map(|shape| wide_terms(circuit, shape));
        let blocks = |parts: &[TermCount]| g1_sum_blocks(self.isa, parts, self.threads);
        [blocks(&[quotient, l]), blocks(&[a])]
    }

    fn g2_blocks(&self, circuit: &Circuit, shapes: &Shapes) -> Vec<usize> {
        let terms = wide_terms(circuit, shapes.b_g2);
        g2_sum_blocks(self.isa, &[terms], self.b_g2_threads)
    }
}

/// A pool's blocks without the blocks: what it maps when it is asked for some, and
/// keeps those that come back.
#[derive(Default)]
struct Replay {
    free: FreeList<Place>,
    /// What is mapped, in bytes each.
    mapped: Vec<usize>,
    /// The most that was mapped at once.
    mapped_bytes_max: usize,
}

impl Replay {
    /// Takes blocks all of which are held at the same time.
    fn take(&mut self, blocks: &[usize]) -> Vec<Place> {
        // Larger than any memory, it is not mapped.
        let take = |bytes: &usize| self.take_one(*bytes).ok();
        blocks.iter().filter_map(take).collect()
    }

    fn take_one(&mut self, bytes: usize) -> io::Result<Place> {
        let mapped = &mut self.mapped;
        let map = |bytes| {
            mapped.push(bytes);
            Ok(Place::whole(mapped.len() - 1, bytes))
        };
        let taken = self.free.take_or_map(bytes, map)?;
        self.unmap(taken.given_up);
        let mapped_bytes = self.mapped.iter().sum();
        self.mapped_bytes_max = self.mapped_bytes_max.max(mapped_bytes);
        Ok(taken.extent)
    }

    fn give_back(&mut self, blocks: impl IntoIterator<Item = Place>) {
        for block in blocks {
            let unused = self.free.give_back(block);
            self.unmap(unused);
        }
    }

    fn unmap(&mut self, places: Vec<Place>) {
        for place in places {
            if let Some(mapped) = self.mapped.get_mut(place.mapping()) {
                *mapped -= place.bytes();
            }
        }
    }

    /// What is mapped in the end, in bytes of each block.
    fn into_blocks(self) -> Vec<usize> {
        self.mapped.into_iter().filter(|bytes| *bytes > 0).collect()
    }
}

/// The terms of a sum over the witness, or over a query of it.
fn wide_terms(circuit: &Circuit, multiples: Option<Shape>) -> TermCount {
    TermCount {
        wide: num_wide(circuit),
        is_plain: false,
        multiples,
    }
}

fn num_wide(circuit: &Circuit) -> usize {
    circuit.program().num_variables() - circuit.num_boolean()
}

/// A packed witness, or a query of it.
fn packed_bytes(circuit: &Circuit) -> u64 {
    packed_arrays(circuit, circuit.program().num_aux())
        .iter()
        .sum::<usize>() as u64
}

/// Bytes of each vector of a packed witness, or of a query of it over so many variables:
/// bits, which of them are wide, ranks of both, and room for all that are wide.
fn packed_arrays(circuit: &Circuit, variables: usize) -> [usize; 4] {
    let words = variables / 64 + 2;
    let [bits, ranks] = [size_of::<u64>(), size_of::<u32>()].map(|bytes| words * bytes);
    [bits, bits, ranks, num_wide(circuit) * size_of::<Scalar>()]
}

/// Those of them that the pool lends.
fn packed_blocks(circuit: &Circuit, variables: usize) -> Vec<usize> {
    let arrays = packed_arrays(circuit, variables).into_iter();
    arrays
        .filter(|bytes| *bytes >= WitnessMemory::LARGE_BYTES)
        .collect()
}

/// What proving a partition holds at once, in bytes: the witness, and what is made of
/// it, and what the pool maps. `shapes` are those of the multiples that its parameters
/// have.
#[must_use]
pub fn partition_bytes(circuit: &Circuit, sums: &Sums, shapes: &Shapes) -> u64 {
    let heap_bytes = HEAP_COPIES * packed_bytes(circuit) + sums.threads_bytes(shapes);
    pool_bytes(circuit, sums, shapes) + heap_bytes
}

/// What the pool maps for partitions of a circuit one after the other, in bytes: for the
/// witness, the vectors over the domain, and what its queries and the sums need that
/// nothing suits which was given back before.
#[must_use]
pub fn pool_bytes(circuit: &Circuit, sums: &Sums, shapes: &Shapes) -> u64 {
    replay(circuit, sums, shapes).mapped_bytes_max as u64
}

/// What is kept of it for the next partition, in bytes of each block.
pub(crate) fn pool_blocks(circuit: &Circuit, sums: &Sums, shapes: &Shapes) -> Vec<usize> {
    replay(circuit, sums, shapes).into_blocks()
}

/// The same where the devices evaluate by themselves, and only the witness is made here.
pub(crate) fn witness_blocks(circuit: &Circuit) -> Vec<usize> {
    let mut pool = Replay::default();
    replay_witness(circuit, &mut pool);
    pool.into_blocks()
}

/// Takes a witness's blocks, and what is given back when its parts are one.
fn replay_witness(circuit: &Circuit, pool: &mut Replay) -> Vec<Place> {
    let variables = circuit.program().num_aux();
    let [witness, parts] = [(); 2].map(|()| pool.take(&packed_blocks(circuit, variables)));
    pool.give_back(parts);
    witness
}

fn replay(circuit: &Circuit, sums: &Sums, shapes: &Shapes) -> Replay {
    let vector_bytes = circuit.domain_len() * size_of::<Scalar>();
    let densities = circuit.densities();
    let mut pool = Replay::default();
    let witness = replay_witness(circuit, &mut pool);
    let [a, b, scratch] = [(); 3].map(|()| pool.take(&[vector_bytes]));
    let [of_a, of_b] = [&densities.a_aux, &densities.b_aux]
        .map(|density| pool.take(&packed_blocks(circuit, density.count())));
    pool.give_back(b.into_iter().chain(scratch));
    for blocks in sums.g1_blocks(circuit, shapes) {
        let blocks = pool.take(&blocks);
        pool.give_back(blocks);
    }
    pool.give_back([a, witness, of_a].into_iter().flatten());
    pool.take(&sums.g2_blocks(circuit, shapes));
    drop(of_b);
    pool
}

/// What a partition holds once its device region is over, in bytes: the scalars
/// of the B query, and what the sum over them takes.
#[must_use]
pub fn finish_bytes(circuit: &Circuit, sums: &Sums, shapes: &Shapes) -> u64 {
    let blocks = sums.g2_blocks(circuit, shapes);
    packed_bytes(circuit) + blocks.iter().sum::<usize>() as u64 + sums.threads_bytes(shapes)
}

/// The vectors over the domain, in bytes: a, b and what the quotient needs beside
/// them.
#[must_use]
pub fn buffer_bytes(circuit: &Circuit) -> u64 {
    3 * circuit.domain_len() as u64 * SCALAR_BYTES
}

/// What a circuit holds for as long as it is kept, in bytes: its compiled form,
/// the densities, and its domain's table of twiddles.
#[must_use]
pub fn circuit_bytes(circuit: &Circuit) -> u64 {
    let densities = 3 * circuit.program().num_variables() / 8;
    let twiddles = circuit.domain_len() / 2 * size_of::<Scalar>();
    (circuit.program().resident_bytes() + densities + twiddles) as u64
}
