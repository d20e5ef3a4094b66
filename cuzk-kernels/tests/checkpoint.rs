//! Pausing and stopping: a stopped kernel says so and gives nothing, a paused
//! one gives what it would have given.

#![allow(clippy::unwrap_used)] // the helpers of tests may panic

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use cuzk_bounded::{BoundedJoin, bounded};
use cuzk_kernels::msm::{self, Bits, PackedScalars};
use cuzk_kernels::ntt::Domain;
use cuzk_kernels::quotient::quotient_with;
use cuzk_kernels::{Context, Isa, KernelError, naive};
use cuzk_memory::{Checkpoint, Mapped, NEVER_STOP};
use ff::Field;
use group::prime::PrimeCurveAffine;
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Says stop at one call, and only then.
struct StopAt {
    call: usize,
    calls: AtomicUsize,
}

impl StopAt {
    fn new(call: usize) -> StopAt {
        StopAt {
            call,
            calls: AtomicUsize::new(0),
        }
    }

    fn checkpoint(&self) -> Checkpoint<'_> {
        Checkpoint::asking(|| self.calls.fetch_add(1, Ordering::Relaxed) == self.call)
    }
}

/// Closed from one call on, until it is opened for good.
struct Gate {
    call: usize,
    calls: AtomicUsize,
    open: Mutex<bool>,
    changed: Condvar,
    waiting: AtomicUsize,
}

impl Gate {
    fn new(call: usize) -> Gate {
        Gate {
            call,
            calls: AtomicUsize::new(0),
            open: Mutex::new(false),
            changed: Condvar::new(),
            waiting: AtomicUsize::new(0),
        }
    }

    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    /// Blocks at the gate, and never stops.
    fn checkpoint(&self) -> Checkpoint<'_> {
        Checkpoint::asking(|| self.is_cancelled())
    }

    fn is_cancelled(&self) -> bool {
        if self.calls.fetch_add(1, Ordering::SeqCst) >= self.call {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let open = self.open.lock().unwrap();
            let opened = bounded(|| self.changed.wait_while(open, |open| !*open));
            drop(opened.unwrap());
        }
        false
    }
}

/// The output of a kernel.
#[derive(Debug, PartialEq)]
enum Output {
    Quotient(Vec<Scalar>),
    G1(G1Projective),
    G2(G2Projective),
    G1Columns(Vec<G1Projective>),
    G2Columns(Vec<G2Projective>),
}

/// A kernel with its input.
struct Case {
    isa: Isa,
    kernel: Kernel,
    bases_g1: Vec<G1Affine>,
    bases_g2: Vec<G2Affine>,
    scalars: Vec<Scalar>,
    others: Vec<Scalar>,
}

#[derive(Clone, Copy, Debug)]
enum Kernel {
    Quotient,
    G1,
    G1Packed,
    G2Packed,
    G1Columns,
    G2Columns,
}

const KERNELS: [Kernel; 6] = [
    Kernel::Quotient,
    Kernel::G1,
    Kernel::G1Packed,
    Kernel::G2Packed,
    Kernel::G1Columns,
    Kernel::G2Columns,
];

impl Case {
    fn new(kernel: Kernel, isa: Isa, log_size: u32, seed: u64) -> Case {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let size = 1 << log_size;
        let mut random = |of_16_wide: usize| -> Vec<Scalar> {
            (0..size)
                .map(|i| match i % 16 {
                    i if i < of_16_wide => Scalar::random(&mut rng),
                    i => Scalar::from(i as u64 % 2),
                })
                .collect()
        };
        Case {
            isa,
            kernel,
            scalars: random(3),
            others: random(16),
            bases_g1: walk(size),
            bases_g2: walk(size),
        }
    }

    fn run(&self, checkpoint: &Checkpoint<'_>) -> Result<Output, KernelError> {
        let isa = self.isa;
        let memory = &Mapped;
        let context = Context {
            isa,
            checkpoint,
            memory,
        };
        let (ones, wide, values) = pack(&self.scalars);
        let packed = PackedScalars::new(self.scalars.len(), &ones, &wide, &values)?;
        Ok(match self.kernel {
            Kernel::Quotient => {
                let domain = Domain::with(isa, self.scalars.len().ilog2())?;
                let (mut a, mut b) = (self.scalars.clone(), self.others.clone());
                let mut scratch = a.clone();
                quotient_with(&domain, &mut a, &mut b, &mut scratch, context)?;
                Output::Quotient(a)
            }
            Kernel::G1 => Output::G1(msm::g1_with(
                context,
                self.bases_g1.as_slice(),
                &self.scalars,
            )?),
            Kernel::G1Packed => {
                Output::G1(msm::g1_packed(context, self.bases_g1.as_slice(), &packed)?)
            }
            Kernel::G2Packed => {
                Output::G2(msm::g2_packed(context, self.bases_g2.as_slice(), &packed)?)
            }
            Kernel::G1Columns => {
                let columns = [packed.bits(), Bits::new(packed.len(), &wide)?];
                let bases = self.bases_g1.as_slice();
                Output::G1Columns(msm::g1_columns(context, bases, &columns)?)
            }
            Kernel::G2Columns => {
                let columns = [packed.bits(), Bits::new(packed.len(), &wide)?];
                let bases = self.bases_g2.as_slice();
                Output::G2Columns(msm::g2_columns(context, bases, &columns)?)
            }
        })
    }

    fn expected(&self) -> Output {
        let (ones, wide, _) = pack(&self.scalars);
        let columns = [&ones[..], &wide];
        match self.kernel {
            Kernel::Quotient => {
                Output::Quotient(naive::quotient(&self.scalars, &self.others).unwrap().0)
            }
            Kernel::G1 | Kernel::G1Packed => Output::G1(naive::msm(&self.bases_g1, &self.scalars)),
            Kernel::G2Packed => Output::G2(naive::msm(&self.bases_g2, &self.scalars)),
            Kernel::G1Columns => Output::G1Columns(naive::columns(&self.bases_g1, &columns)),
            Kernel::G2Columns => Output::G2Columns(naive::columns(&self.bases_g2, &columns)),
        }
    }
}

/// Points without a multiplication each.
fn walk<A>(len: usize) -> Vec<A>
where
    A: PrimeCurveAffine<Scalar = Scalar> + From<A::Curve>,
{
    let mut point = A::identity().to_curve();
    (0..len)
        .map(|_| {
            point += A::generator();
            A::from(point)
        })
        .collect()
}

fn pack(scalars: &[Scalar]) -> (Vec<u64>, Vec<u64>, Vec<Scalar>) {
    let words = scalars.len().div_ceil(64);
    let (mut ones, mut wide, mut values) = (vec![0; words], vec![0; words], Vec::new());
    for (i, scalar) in scalars.iter().enumerate() {
        if *scalar == Scalar::ONE {
            ones[i / 64] |= 1 << (i % 64);
        } else if *scalar != Scalar::ZERO {
            wide[i / 64] |= 1 << (i % 64);
            values.push(*scalar);
        }
    }
    (ones, wide, values)
}

fn pool() -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(2).build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_stop_at_any_call_is_an_error(
        kernel in prop::sample::select(&KERNELS[..]),
        isa in prop::sample::select(Isa::all()),
        log_size in 1u32..10,
        seed: u64,
        place in 0.0..1.0,
    ) {
        let case = Case::new(kernel, isa, log_size, seed);
        let (pool, counter) = (pool(), StopAt::new(usize::MAX));
        prop_assert_eq!(pool.install(|| case.run(&counter.checkpoint())).unwrap(), case.expected());
        // How work is cut does not depend on the run, so neither do the calls.
        let calls = counter.calls.into_inner();
        prop_assert!(calls > 0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss,
            reason = "a place among few calls")]
        let call = (calls as f64 * place) as usize;
        let stopped = pool.install(|| case.run(&StopAt::new(call).checkpoint()));
        prop_assert!(matches!(stopped, Err(KernelError::Stopped)), "{call} of {calls}");
    }

    /// While every thread of the paused kernel's pool waits, another kernel
    /// runs on another pool.
    #[test]
    fn a_pause_at_any_call_changes_nothing(
        kernel in prop::sample::select(&KERNELS[..]),
        urgent in prop::sample::select(&KERNELS[..]),
        isa in prop::sample::select(Isa::all()),
        log_size in 1u32..10,
        seed: u64,
        call in 0usize..6,
    ) {
        let case = Case::new(kernel, isa, log_size, seed);
        let urgent = Case::new(urgent, isa, log_size, seed ^ 1);
        let gate = Gate::new(call);
        let (slow, fast) = (pool(), pool());
        let (result, urgent_result) = thread::scope(|scope| {
            let paused = scope.spawn(|| slow.install(|| case.run(&gate.checkpoint())));
            while gate.waiting.load(Ordering::SeqCst) == 0 && !paused.is_finished() {
                thread::yield_now();
            }
            let urgent = fast.install(|| urgent.run(&NEVER_STOP));
            gate.open();
            (paused.join_bounded().unwrap(), urgent)
        });
        prop_assert_eq!(result.unwrap(), case.expected());
        prop_assert_eq!(urgent_result.unwrap(), urgent.expected());
    }
}
