//! Provers: several proofs, several threads, other devices.

use std::sync::Arc;
use std::thread;

use bellperson::groth16::Proof;
use bellperson::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::{Bls12, Scalar};
use cuzk_bounded::BoundedJoin;
use cuzk_groth16::backend::Randomness;
use cuzk_groth16::params::{MappedParams, ParamsError, write_multiples};
use cuzk_groth16::{ProveError, Prover, ProvingDevice, RowCheck, prove, prove_batch, verify};
use cuzk_kernels::Isa;
use cuzk_testing::circuits::{Mimc, Sha256Chain};
use cuzk_timeline::Stage;

use crate::oracle::{added, in_memory};

fn different(count: u64) -> Vec<Randomness> {
    let pair = |k| Randomness::Added {
        r: Scalar::from(k),
        s: Scalar::from(k + 100),
    };
    (0..count).map(pair).collect()
}

/// More instances than are synthesised at a time.
#[test]
fn a_batch_has_the_proofs_of_its_instances() {
    let blank = Mimc::blank(10);
    let prover = in_memory(blank.clone());
    let instances: Vec<_> = (0..19).map(|k| blank.with([k, 2 * k + 1])).collect();
    let randomness = different(19);
    let together = prover.prove_batch_with(instances.clone(), randomness.clone());
    let one_by_one = instances.into_iter().zip(randomness);
    let one_by_one: Vec<_> = one_by_one
        .map(|(instance, randomness)| prover.prove_with(instance, randomness).unwrap())
        .collect();
    assert_eq!(together.unwrap(), one_by_one);
    assert!(prover.prove_batch(Vec::<Mimc>::new()).unwrap().is_empty());
}

/// The bits of these witnesses are added up together.
#[test]
fn a_batch_of_bits_has_the_proofs_of_its_instances() {
    let blank = Sha256Chain::blank(2);
    let prover = in_memory(blank.clone());
    let instances: Vec<_> = [1, 2, 3].map(|byte| blank.with(byte)).into();
    let backend = ProvingDevice::shared().unwrap();
    let footprint = backend.backend().batch_footprint(prover.circuit(), 3);
    assert!(footprint.is_some() || !backend.backend().is_this_cpu());
    let together = prover.prove_batch_with(instances.clone(), different(3));
    let alone = prover.prove_with(instances[1].clone(), different(3)[1]);
    assert_eq!(together.unwrap()[1], alone.unwrap());
}

#[test]
fn one_bad_instance_fails_its_batch_by_number() {
    let blank = Mimc::blank(10);
    let prover = in_memory(blank.clone());
    let mut instances: Vec<_> = (0..12).map(|k| blank.with([k, k])).collect();
    instances[9] = blank;
    let error = prover.prove_batch(instances.clone()).unwrap_err();
    assert!(matches!(&error, ProveError::InBatch { index: 9, .. }));
    assert!(error.to_string().starts_with("circuit 9 of the batch: "));
    let too_few = prover.prove_batch_with(instances, different(11));
    assert!(matches!(too_few, Err(ProveError::Lengths { .. })));
}

#[test]
fn threads_share_a_prover() {
    let blank = Mimc::blank(30);
    let prover = in_memory(blank.clone());
    let proofs = thread::scope(|scope| {
        let prove = |k| {
            let (prover, instance) = (&prover, blank.with([k, 7]));
            scope.spawn(move || prover.prove_with(instance, added()).unwrap())
        };
        let threads: Vec<_> = [1, 2, 1, 2].map(prove).into();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join_bounded().unwrap());
        joined.collect::<Vec<_>>()
    });
    assert_eq!(proofs[0], proofs[2]);
    assert_eq!(proofs[1], proofs[3]);
    assert_ne!(proofs[0], proofs[1]);
}

/// Whatever the instructions and threads, the bytes are the same.
#[test]
fn every_device_makes_the_same_proof() {
    let blank = Mimc::blank(50);
    let instance = blank.with([8, 9]);
    let shared = in_memory(blank);
    let expected = shared.prove_with(instance.clone(), added()).unwrap();
    for isa in Isa::all() {
        let device = Arc::new(ProvingDevice::cpu(3, isa).unwrap());
        let (circuit, params) = (shared.circuit(), shared.params());
        let prover = Prover::on(Arc::clone(circuit), Arc::clone(params), device).unwrap();
        let proof = prover.prove_with(instance.clone(), added()).unwrap();
        assert_eq!(proof, expected, "{isa}");
    }
}

/// Each proof is a job with its stages, also one of a batch and one that fails.
#[test]
fn a_device_records_the_stages_of_its_proofs() {
    let blank = Mimc::blank(10);
    let shared = in_memory(blank.clone());
    let device = Arc::new(ProvingDevice::cpu(1, Isa::best()).unwrap());
    let (circuit, params) = (shared.circuit(), shared.params());
    let prover = Prover::on(Arc::clone(circuit), Arc::clone(params), Arc::clone(&device)).unwrap();
    let instances = vec![blank.with([1, 2]), blank.with([3, 4])];
    prover.prove_batch(instances).unwrap();
    prover.prove(blank.clone()).unwrap_err();
    prover.prove(blank.with([5, 6])).unwrap();
    let stages = |job| -> Vec<_> {
        let spans = device.timeline().of_job(job).into_iter();
        spans.map(|span| span.stage).collect()
    };
    for job in [0, 1, 3] {
        let stages = stages(job);
        for stage in [Stage::CircuitWitness, Stage::Msm, Stage::BG2, Stage::Verify] {
            let count = stages.iter().filter(|other| **other == stage).count();
            assert_eq!(count, 1, "{job}: {stages:?}");
        }
    }
    assert_eq!(stages(2), [Stage::CircuitWitness]);
    assert_eq!(stages(4), []);
}

#[test]
fn functions_prove_without_a_prover() {
    let blank = Mimc::blank(10);
    let prover = in_memory(blank.clone());
    let (circuit, params) = (prover.circuit(), prover.params());
    let instances = vec![blank.with([1, 2]), blank.with([3, 4])];
    let one = prove(circuit, params, instances[0].clone()).unwrap();
    let two = prove_batch(circuit, params, instances).unwrap();
    assert_eq!(two.len(), 2);
    // Random proofs.
    assert_ne!(one, two[0]);
}

/// The key is good if the caller gives other inputs than the circuit has.
#[test]
fn another_number_of_public_inputs_is_told() {
    let instance = Mimc::blank(10).with([1, 2]);
    let image = instance.image().unwrap();
    let prover = in_memory(Mimc::blank(10));
    let proof = prover.prove(instance).unwrap();
    let proof = Proof::<Bls12>::read(&proof.as_bytes()[..]).unwrap();
    let told = |inputs: &[Scalar]| {
        let verified = verify(prover.key(), &proof, inputs);
        verified.map_err(|error| error.problem).map(drop)
    };
    told(&[image]).unwrap();
    for inputs in [&[][..], &[image; 2]] {
        let problem = told(inputs).unwrap_err();
        let given = format!("{} public inputs were given", inputs.len());
        assert!(problem.starts_with(&given), "{problem}");
    }
}

/// Parameters in memory have no place for multiples, and become a file that replaces no other.
#[test]
fn parameters_in_memory_are_written_once_and_have_no_multiples() {
    let prover = in_memory(Mimc::blank(10));
    let (params, program) = (prover.params(), prover.circuit().program());
    let (densities, isa) = (prover.circuit().densities(), Isa::best());
    let made = write_multiples(params, program, densities, isa.into(), (1, 1 << 30), |_| ());
    assert!(matches!(made, Err(ParamsError::Multiples { .. })));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mimc.params");
    params.write(&path).unwrap();
    assert!(matches!(params.write(&path), Err(ParamsError::Io { .. })));
    let opened = MappedParams::open(&path).unwrap();
    assert!(opened.bytes() == params.bytes());
    assert!(params.is_in_memory() && !opened.is_in_memory());
}

/// A circuit that fails says so, and not that it has another shape.
#[test]
fn a_circuit_that_fails_gives_its_own_error() {
    struct Failing(bool);

    impl Circuit<Scalar> for Failing {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            let one = CS::one();
            cs.enforce(|| "", |lc| lc + one, |lc| lc + one, |lc| lc + one);
            match self.0 {
                true => Err(SynthesisError::DivisionByZero),
                false => Ok(()),
            }
        }
    }

    for check in [RowCheck::Rows, RowCheck::Counts] {
        let prover = in_memory(Failing(false)).with_row_check(check);
        let error = prover.prove(Failing(true)).unwrap_err();
        let source = SynthesisError::DivisionByZero.to_string();
        assert!(matches!(&error, ProveError::Synthesis { .. }));
        assert!(error.to_string().ends_with(&source), "{error}");
    }
    let error = cuzk_groth16::compile("failing", Failing(true)).unwrap_err();
    assert!(matches!(error, ProveError::Synthesis { .. }));
}
