//! Random circuits of many shapes, proved with each kernel of the CPU and on doubles of a device.
//! The randomness is fixed. So all proofs are bellperson's, byte for byte.
//!
//! An ordinary run has the same seeds each time; see [`cuzk_testing::differential`].

use std::sync::Arc;
use std::time::Duration;

use bellperson::groth16::{Parameters, create_proof};
use blstrs::{Bls12, Scalar};
use cuzk_groth16::backend::{Backend, CudaBackend, HostBG2, Randomness};
use cuzk_groth16::{Prover, ProvingDevice, compile, setup};
use cuzk_kernels::Isa;
use cuzk_testing::differential::{again, seeds};
use ff::Field;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::ThreadPoolBuilder;
use supraseal_sys::GpuResources;
use supraseal_sys::device::{BG2, DeviceOptions};
use supraseal_sys::double::{Controls, open_in_pieces};

use crate::oracle::waste;
use crate::random::{Random, Step, Term, small};

/// The circuits of an ordinary run: each shape twice.
const CIRCUITS: u64 = 2 * Shape::ALL.len() as u64;

/// The threads of a device.
const THREADS: usize = 2;

/// The steps that a circuit mostly has.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Bits, and products of them.
    Bits,
    /// Values and coefficients of 255 bits.
    Wide,
    /// Everything.
    Mixed,
    /// Mostly rows without terms, and rows whose terms cancel.
    Empty,
    /// No variable but ONE.
    Constants,
    /// Mostly public inputs.
    ManyInputs,
    /// Private variables only.
    NoInputs,
    /// A few steps, many times.
    Repeated,
    /// A step or two.
    Tiny,
}

impl Shape {
    const ALL: [Self; 9] = [
        Self::Bits,
        Self::Wide,
        Self::Mixed,
        Self::Empty,
        Self::Constants,
        Self::ManyInputs,
        Self::NoInputs,
        Self::Repeated,
        Self::Tiny,
    ];

    /// Returns the shape of a seed. Successive seeds have all shapes.
    fn of(seed: u64) -> Self {
        let all = Self::ALL.len() as u64;
        Self::ALL[usize::try_from(seed % all).unwrap()]
    }

    /// Returns how often each step occurs: inputs, words, wide values, bits, private and public
    /// products, rows that cancel, empty rows.
    fn weights(self) -> [(Kind, u32); 8] {
        let [
            inputs,
            words,
            wide,
            bits,
            products,
            public,
            cancelled,
            empty,
        ] = match self {
            Self::Bits => [0, 0, 0, 12, 6, 1, 1, 1],
            Self::Wide => [1, 0, 6, 0, 6, 1, 0, 0],
            Self::Mixed | Self::Repeated | Self::Tiny => [1; 8],
            Self::Empty => [1, 1, 0, 1, 1, 0, 8, 20],
            Self::Constants => [0, 0, 0, 0, 0, 0, 3, 1],
            Self::ManyInputs => [12, 1, 0, 1, 2, 6, 1, 1],
            Self::NoInputs => [0, 2, 2, 4, 6, 0, 1, 1],
        };
        [
            (Kind::Input, inputs),
            (Kind::Word, words),
            (Kind::Wide, wide),
            (Kind::Bit, bits),
            (Kind::Product, products),
            (Kind::PublicProduct, public),
            (Kind::Cancelled, cancelled),
            (Kind::Empty, empty),
        ]
    }

    /// Returns the least and the most steps, and how often they are repeated at most.
    fn lengths(self) -> [usize; 3] {
        match self {
            Self::Tiny => [1, 2, 1],
            Self::Repeated => [1, 6, 200],
            _ => [3, 80, 3],
        }
    }

    fn circuit(self, random: &mut ChaCha8Rng) -> Random {
        let [least, most, times] = self.lengths();
        let steps: Vec<_> = (0..random.gen_range(least..=most))
            .map(|_| self.step(random))
            .collect();
        Random {
            steps: vec![steps; random.gen_range(1..=times)].concat(),
            is_blank: false,
        }
    }

    fn step(self, random: &mut ChaCha8Rng) -> Step {
        let weights = self.weights();
        let (kind, _) = weights
            .choose_weighted(random, |(_, weight)| *weight)
            .unwrap();
        match kind {
            Kind::Input => Step::Input(self.value(random)),
            Kind::Word => Step::Aux(Scalar::from(
                random.r#gen::<u64>() >> random.gen_range(0..64),
            )),
            Kind::Wide => Step::Aux(Scalar::random(random)),
            Kind::Bit => Step::Bit(random.r#gen()),
            Kind::Product => Step::Product(self.terms(random), self.terms(random), false),
            Kind::PublicProduct => Step::Product(self.terms(random), self.terms(random), true),
            Kind::Cancelled => Step::Cancelled(self.terms(random), self.terms(random)),
            Kind::Empty => Step::Empty,
        }
    }

    fn value(self, random: &mut ChaCha8Rng) -> Scalar {
        match self {
            Self::Wide => Scalar::random(random),
            _ => Scalar::from(random.gen_range(0..4u64)),
        }
    }

    fn terms(self, random: &mut ChaCha8Rng) -> Vec<Term> {
        let count = random.gen_range(0..6);
        let term = |_| {
            let is_wide = matches!(self, Self::Wide) || random.gen_ratio(1, 8);
            let coefficient = match is_wide {
                true => Scalar::random(&mut *random),
                false => small(random.gen_range(-3..=3)),
            };
            (random.r#gen(), coefficient)
        };
        (0..count).map(term).collect()
    }
}

/// A step without its values.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Input,
    Word,
    Wide,
    Bit,
    Product,
    PublicProduct,
    Cancelled,
    Empty,
}

/// Returns a double of a device, which keeps the circuits that it has proved. It makes the MSM in
/// G2 itself, or leaves it to the host, and takes points in short pieces.
pub(crate) fn double(b_g2: BG2, log_piece_max: u32) -> ProvingDevice {
    let pool = Arc::new(
        ThreadPoolBuilder::new()
            .num_threads(THREADS)
            .build()
            .unwrap(),
    );
    let options = DeviceOptions {
        memory_bytes: None,
        workers: 1,
        b_g2,
        stall_limit: Duration::from_secs(600),
    };
    let resources = Arc::new(GpuResources::new().unwrap());
    let controls = Controls::new().unwrap();
    let device = open_in_pieces(1 << 28, &options, log_piece_max, resources, &controls).unwrap();
    let host = HostBG2::Kernel {
        pool: Arc::clone(&pool),
        isa: Isa::best(),
    };
    let backend: Arc<dyn Backend> = Arc::new(CudaBackend::new(Arc::new(device), host));
    ProvingDevice::new(backend, pool)
}

/// Returns everything that proves here, by name.
fn devices() -> Vec<(String, Arc<ProvingDevice>)> {
    let cpus = Isa::all().into_iter().map(|isa| {
        let device = ProvingDevice::cpu(THREADS, isa).unwrap();
        (isa.to_string(), device)
    });
    let doubles = [(BG2::Cpu, 4), (BG2::Device, 0)].map(|(b_g2, log_piece_max)| {
        let name = format!("the double, G2 on {b_g2:?}");
        (name, double(b_g2, log_piece_max))
    });
    let all = cpus.chain(doubles);
    all.map(|(name, device)| (name, Arc::new(device))).collect()
}

#[test]
fn every_device_makes_bellpersons_proofs_of_random_circuits() {
    let devices = devices();
    let seeds = seeds(CIRCUITS);
    let count = seeds.end - seeds.start;
    let mut rows = 0;
    for seed in seeds {
        let (shape, random) = (Shape::of(seed), &mut ChaCha8Rng::seed_from_u64(seed));
        println!(
            "{shape:?}; {}",
            again(seed, "--test any_circuit differential")
        );
        let instance = shape.circuit(random);
        let [r, s] = [(); 2].map(|()| Scalar::random(&mut *random));
        let blank = Random {
            is_blank: true,
            ..instance.clone()
        };
        let circuit = Arc::new(compile("random", blank).unwrap());
        let params = Arc::new(setup(&circuit, &waste()).unwrap());
        // Other tests compare the parameters themselves.
        let theirs = Parameters::<Bls12>::read(params.bytes(), false).unwrap();
        let mut expected = Vec::new();
        let proof = create_proof::<Bls12, _, _>(instance.clone(), &theirs, r, s).unwrap();
        proof.write(&mut expected).unwrap();
        for (name, device) in &devices {
            let device = Arc::clone(device);
            let prover = Prover::on(Arc::clone(&circuit), Arc::clone(&params), device).unwrap();
            let randomness = Randomness::Added { r, s };
            let proof = prover.prove_with(instance.clone(), randomness).unwrap();
            assert!(proof.as_bytes()[..] == expected, "{name}, seed {seed}");
        }
        rows += circuit.program().rows();
    }
    println!(
        "{count} circuits with {rows} rows, proved on {} devices, have bellperson's proofs",
        devices.len()
    );
}
