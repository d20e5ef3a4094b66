//! The bits of several partitions, added up together: proofs with these sums are those
//! without.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bellperson::{ConstraintSystem, LinearCombination, SynthesisError};
use blstrs::Scalar;
use cuzk_groth16::Circuit;
use cuzk_groth16::backend::{
    Backend, BackendError, Batch, BitSums, CpuBackend, Evaluation, Randomness, Scaling, Synthesized,
};
use cuzk_groth16::memory::buffer_pool;
use cuzk_groth16::params::{GenerateOptions, LoadedParams, ParamCache, ParameterFiles};
use cuzk_kernels::Isa;
use cuzk_memory::{BufferPool, Checkpoint, Dealloc};
use cuzk_pce::{PackedWitness, packed_witness};
use cuzk_timeline::Timeline;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::ThreadPoolBuilder;
use supraseal_sys::GpuResources;

/// Bits, words that are anything, and products of words and bits.
#[derive(Clone, Debug)]
struct Mixed {
    bits: Vec<bool>,
    words: Vec<u64>,
    is_blank: bool,
}

impl Mixed {
    /// A partition with random values. Some words are 0 or 1.
    fn random(bits: usize, words: usize, rng: &mut ChaCha8Rng) -> Self {
        Self {
            bits: (0..bits).map(|_| rng.r#gen()).collect(),
            words: (0..words).map(|_| rng.gen_range(0..5)).collect(),
            is_blank: false,
        }
    }

    fn value(&self, value: u64) -> Result<Scalar, SynthesisError> {
        match self.is_blank {
            true => Err(SynthesisError::AssignmentMissing),
            false => Ok(Scalar::from(value)),
        }
    }
}

impl bellperson::Circuit<Scalar> for Mixed {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let count = self.bits.iter().filter(|bit| **bit).count() as u64;
        let count = cs.alloc_input(|| "count", || self.value(count))?;
        let first_bit = self.bits.first().is_some_and(|bit| *bit);
        let first = cs.alloc_input(|| "first", || self.value(first_bit.into()))?;
        let mut all = LinearCombination::<Scalar>::zero();
        let mut last = CS::one();
        for (i, bit) in self.bits.iter().enumerate() {
            last = cs.alloc(|| format!("bit {i}"), || self.value((*bit).into()))?;
            let not = |lc| lc + CS::one() - last;
            cs.enforce(|| format!("is bit {i}"), |lc| lc + last, not, |lc| lc);
            all = all + last;
        }
        cs.enforce(|| "counted", |_| all, |lc| lc + CS::one(), |lc| lc + count);
        cs.enforce(|| "in B", |lc| lc + first, |lc| lc + first, |lc| lc + first);
        for (i, word) in self.words.iter().enumerate() {
            let bit = self.bits.last().is_some_and(|bit| *bit);
            let product = if bit { *word } else { 0 };
            let word = cs.alloc(|| format!("word {i}"), || self.value(*word))?;
            let product = cs.alloc(|| format!("product {i}"), || self.value(product))?;
            cs.enforce(
                || format!("is product {i}"),
                |lc| lc + word,
                |lc| lc + last,
                |lc| lc + product,
            );
        }
        Ok(())
    }
}

/// A circuit with parameters, and the witnesses of some partitions.
struct Case {
    circuit: Arc<Circuit>,
    params: Arc<LoadedParams>,
    witnesses: Vec<PackedWitness<Scalar>>,
    resources: Arc<GpuResources>,
    buffers: Arc<BufferPool>,
}

impl Case {
    fn new(bits: usize, words: usize, partitions: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let random = [(); 1].repeat(partitions).into_iter();
        let all: Vec<_> = random
            .map(|()| Mixed::random(bits, words, &mut rng))
            .collect();
        let blank = Mixed {
            is_blank: true,
            ..all[0].clone()
        };
        let circuit = Circuit::new("mixed", cuzk_pce::compile(blank).unwrap());
        Self {
            params: params_of(&circuit, seed),
            circuit: Arc::new(circuit),
            witnesses: all
                .into_iter()
                .map(|one| packed_witness(one).unwrap())
                .collect(),
            resources: Arc::new(GpuResources::new().unwrap()),
            buffers: buffer_pool(Dealloc::Recycle, 1 << 30),
        }
    }

    fn backend(&self, isa: Isa) -> Arc<dyn Backend> {
        let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let backend = CpuBackend::new(Arc::clone(&self.resources), Arc::new(pool));
        Arc::new(backend.with_isa(isa))
    }

    fn sums(
        &self,
        backend: &Arc<dyn Backend>,
        with_b_g1: bool,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Vec<BitSums>, BackendError> {
        let batch = Batch {
            circuit: &self.circuit,
            params: self.params.mapped(),
            witnesses: &self.witnesses,
            with_b_g1,
            buffers: &self.buffers,
            checkpoint,
        };
        backend.sum_bits(&batch, Timeline::default().trace(0, Some(0)))
    }

    fn proof(
        &self,
        backend: &Arc<dyn Backend>,
        partition: usize,
        randomness: Randomness,
        bit_sums: Option<&BitSums>,
    ) -> Vec<u8> {
        let timeline = Timeline::default();
        let trace = timeline.trace(0, Some(partition));
        let synthesized = Synthesized {
            circuit: Arc::clone(&self.circuit),
            params: Arc::clone(self.params.mapped()),
            witness: self.witnesses[partition].clone(),
            evaluation: Evaluation::Left(Arc::clone(&self.buffers)),
            bit_sums: bit_sums.cloned(),
            randomness,
            checkpoint: Checkpoint::never(),
        };
        let pending = Arc::clone(backend).prove_start(synthesized, trace).unwrap();
        let mut bytes = Vec::new();
        pending.finish(trace).unwrap().write(&mut bytes).unwrap();
        bytes
    }
}

/// Parameters of this seed, whose file is gone but mapped.
fn params_of(circuit: &Circuit, seed: u64) -> Arc<LoadedParams> {
    let folder = tempfile::tempdir().unwrap();
    let cache = ParamCache::new(folder.path());
    let [params, vk] = ["params", "vk"].map(|end| format!("mixed.{end}"));
    let files = ParameterFiles { params, vk };
    let options = GenerateOptions {
        seed,
        ..GenerateOptions::default()
    };
    cache
        .ensure_generated(&files, circuit.program(), options, |_, _| ())
        .unwrap();
    cache.load(&files, &circuit.query_lengths()).unwrap()
}

fn randomness() -> [Randomness; 2] {
    let [first, second] = [0x5eed, 0x0dd5].map(Scalar::from);
    let added = Randomness::Added {
        r: first,
        s: second,
    };
    [
        added,
        Randomness::Scaled(Scaling::new(first, second).unwrap()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn proofs_with_the_sums_of_a_batch_are_those_without(
        bits in 1..150usize,
        words in 0..6usize,
        partitions in 2..20usize,
        seed: u64,
    ) {
        let case = Case::new(bits, words, partitions, seed);
        for isa in Isa::all() {
            let backend = case.backend(isa);
            let all = case.sums(&backend, true, &Checkpoint::never()).unwrap();
            let for_scaled = case.sums(&backend, false, &Checkpoint::never()).unwrap();
            prop_assert_eq!((all.len(), for_scaled.len()), (partitions, partitions));
            let partition = usize::try_from(seed % partitions as u64).unwrap();
            for randomness in randomness() {
                let alone = case.proof(&backend, partition, randomness, None);
                for sums in [&all, &for_scaled] {
                    let with = case.proof(&backend, partition, randomness, Some(&sums[partition]));
                    prop_assert_eq!(&with, &alone);
                }
            }
        }
    }
}

#[test]
fn sums_of_other_parameters_are_not_used() {
    let case = Case::new(40, 3, 2, 1);
    let backend = case.backend(Isa::best());
    let other = Case {
        params: params_of(&case.circuit, 2),
        ..Case::new(40, 3, 2, 1)
    };
    let sums = case.sums(&backend, true, &Checkpoint::never()).unwrap();
    let [randomness, _] = randomness();
    let alone = other.proof(&backend, 0, randomness, None);
    let with = other.proof(&backend, 0, randomness, Some(&sums[0]));
    assert_eq!(with, alone);
    assert_ne!(alone, case.proof(&backend, 0, randomness, None));
}

#[test]
fn one_partition_is_no_batch() {
    let case = Case::new(40, 3, 1, 1);
    let backend = case.backend(Isa::best());
    let sums = case.sums(&backend, true, &Checkpoint::never());
    assert!(sums.unwrap().is_empty());
    // And so few bits are not worth a pass.
    assert_eq!(backend.batch_footprint(&case.circuit, 2), None);
}

#[test]
fn a_stopped_pass_gives_no_sums_and_leaves_the_device_free() {
    let case = Case::new(4000, 3, 3, 1);
    let backend = case.backend(Isa::best());
    for call in [0, 1, 4, 8] {
        let calls = std::sync::atomic::AtomicUsize::new(0);
        let stop = Checkpoint::asking(|| calls.fetch_add(1, Ordering::Relaxed) >= call);
        let stopped = case.sums(&backend, true, &stop);
        assert!(matches!(stopped, Err(BackendError::Stopped)), "{call}");
    }
    assert_eq!(case.resources.throttle().load(Ordering::Relaxed), 0);
    assert_eq!(case.buffers.usage().in_use_bytes, 0);
    assert_eq!(
        case.sums(&backend, true, &Checkpoint::never())
            .unwrap()
            .len(),
        3
    );
}
