//! Gadgets beside writers.

use crate::por::{MerklePath, TreeShape};
use crate::{Builder, Context, Isa, WriteError};
use bellperson::ConstraintSystem;
use bellperson::util_cs::witness_cs::WitnessCS;
use blstrs::Scalar;
use cuzk_memory::Checkpoint;
use ff::Field;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Scalars with the awkward ones among them.
pub(crate) fn scalars(count: usize, seed: u64) -> Vec<Scalar> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count)
        .map(|k| match k % 13 {
            5 => Scalar::ZERO,
            7 => Scalar::ONE,
            11 => -Scalar::ONE,
            _ => Scalar::random(&mut rng),
        })
        .collect()
}

/// `write` writes what `synthesize` allocates, variables and public inputs.
pub(crate) fn assert_writes(
    synthesize: impl FnOnce(&mut WitnessCS<Scalar>),
    write: impl FnOnce(&mut Builder),
) {
    let mut cs = WitnessCS::new();
    synthesize(&mut cs);
    let mut builder = Builder::default();
    builder.push_input(Scalar::ONE);
    write(&mut builder);
    let ours = builder.finish().unwrap().to_plain();
    assert_eq!(ours.inputs(), cs.inputs_slice());
    assert_eq!(ours.aux().len(), cs.aux_slice().len());
    let differs = ours.aux().iter().zip(cs.aux_slice());
    assert_eq!(differs.enumerate().find(|(_, (a, b))| a != b), None);
}

/// A path that leads nowhere in particular.
pub(crate) fn path(shape: TreeShape, seed: u64) -> MerklePath {
    let count: usize = shape.arities().map(|arity| arity - 1).sum();
    let mut values = scalars(count + 2, seed).into_iter();
    let leaf = values.next().unwrap();
    let index = crate::num::words(&values.next().unwrap())[0];
    MerklePath {
        leaf,
        index: index % (1 << shape.index_bits()),
        siblings: shape
            .arities()
            .map(|arity| values.by_ref().take(arity - 1).collect())
            .collect(),
    }
}

/// A path as the circuit's types want it: by level the siblings and the place.
pub(crate) fn options(
    shape: TreeShape,
    path: &MerklePath,
) -> Vec<(Vec<Option<Scalar>>, Option<usize>)> {
    let mut index = usize::try_from(path.index).unwrap();
    let levels = shape.arities().zip(&path.siblings);
    levels
        .map(|(arity, siblings)| {
            let place = index % arity;
            index /= arity;
            (siblings.iter().copied().map(Some).collect(), Some(place))
        })
        .collect()
}

/// Does it on one thread, and on three.
pub(crate) fn in_pools(work: impl Fn() + Sync) {
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(&work);
    }
}

/// `write` asks at least `least` times whether it may go on, and stops whenever it may not.
pub(crate) fn assert_stops<T: std::fmt::Debug>(
    least: usize,
    write: impl Fn(Context<'_>) -> Result<T, WriteError>,
) {
    let asked = AtomicUsize::new(0);
    let asks = |until: usize| {
        asked.store(0, Ordering::Relaxed);
        let is_over = || asked.fetch_add(1, Ordering::Relaxed) >= until;
        let context = Context {
            checkpoint: &Checkpoint::asking(is_over),
            ..Isa::best().into()
        };
        write(context)
    };
    asks(usize::MAX).unwrap();
    let all = asked.load(Ordering::Relaxed);
    assert!(all >= least, "asked {all} times");
    for call in [0, 1, all / 2, all - 1] {
        let stopped = asks(call).unwrap_err();
        assert_eq!(stopped, WriteError::Stopped, "{call} of {all}");
    }
}
