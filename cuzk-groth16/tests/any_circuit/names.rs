//! bellperson's names, used as its users do.

use bellperson::groth16 as theirs;
use blstrs::{Bls12, Scalar};
use cuzk_groth16::ProveError;
use cuzk_groth16::bellperson::{
    ParameterSource, Parameters, SynthesisError, create_proof, create_proof_batch,
    create_proof_batch_in_priority, create_proof_in_priority, create_random_proof,
    create_random_proof_batch, create_random_proof_batch_in_priority,
    create_random_proof_in_priority, generate_random_parameters, prepare_verifying_key,
    verify_proof,
};
use cuzk_testing::circuits::Mimc;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::shape::{Fault, squares};

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(27)
}

fn written(params: &Parameters<Bls12>) -> Vec<u8> {
    let mut bytes = Vec::new();
    params.write(&mut bytes).unwrap();
    bytes
}

/// Everything that follows the `use` lines is bellperson's example. It is run with both.
macro_rules! example {
    ($groth16:path) => {{
        use $groth16::{
            Parameters, Proof, create_random_proof, create_random_proof_batch,
            generate_random_parameters, prepare_verifying_key, verify_proof, verify_proofs_batch,
        };
        let rng = &mut rng();
        let blank = Mimc::blank(322);
        let params = generate_random_parameters::<Bls12, _, _>(blank.clone(), rng).unwrap();
        let key = prepare_verifying_key(&params.vk);
        let mut bytes = Vec::new();
        params.write(&mut bytes).unwrap();
        let params: Parameters<Bls12> = Parameters::read(&bytes[..], true).unwrap();
        let circuit = blank.with([11, 22]);
        let image = circuit.image().unwrap();
        let proof: Proof<Bls12> = create_random_proof(circuit.clone(), &params, rng).unwrap();
        assert!(verify_proof(&key, &proof, &[image]).unwrap());
        proof.write(&mut bytes).unwrap();
        let circuits = vec![circuit, blank.with([33, 44])];
        let images: Vec<_> = circuits.iter().map(|c| vec![c.image().unwrap()]).collect();
        let proofs = create_random_proof_batch(circuits, &params, rng).unwrap();
        let pointers: Vec<_> = proofs.iter().collect();
        assert!(verify_proofs_batch(&key, rng, &pointers, &images).unwrap());
        for proof in &proofs {
            proof.write(&mut bytes).unwrap();
        }
        bytes
    }};
}

#[test]
fn the_same_program_gives_the_same_bytes() {
    let ours: Vec<u8> = example!(cuzk_groth16::bellperson);
    let theirs: Vec<u8> = example!(bellperson::groth16);
    assert!(ours == theirs);
}

#[test]
fn every_name_makes_bellpersons_proof() {
    let blank = Mimc::blank(9);
    let params = generate_random_parameters::<Bls12, _, _>(blank.clone(), &mut rng()).unwrap();
    let read = theirs::Parameters::<Bls12>::read(&written(&params)[..], true).unwrap();
    let circuits = vec![blank.with([1, 2]), blank.with([3, 4]), blank.with([5, 6])];
    let (first, all) = (|| circuits[0].clone(), || circuits.clone());
    let [r, s] = [[7, 8, 9], [10, 11, 12]].map(|scalars| scalars.map(Scalar::from).to_vec());
    let scalars = || (r.clone(), s.clone());
    let (r0, s0) = (r[0], s[0]);

    let expected = theirs::create_proof(first(), &read, r0, s0).unwrap();
    assert!(create_proof(first(), &params, r0, s0).unwrap() == expected);
    assert!(create_proof_in_priority(first(), &params, r0, s0).unwrap() == expected);
    let expected = theirs::create_random_proof(first(), &read, &mut rng()).unwrap();
    assert!(create_random_proof(first(), &params, &mut rng()).unwrap() == expected);
    assert!(create_random_proof_in_priority(first(), &params, &mut rng()).unwrap() == expected);
    let (r, s) = scalars();
    let expected = theirs::create_proof_batch(all(), &read, r, s).unwrap();
    let (r, s) = scalars();
    assert!(create_proof_batch(all(), &params, r, s).unwrap() == expected);
    let (r, s) = scalars();
    assert!(create_proof_batch_in_priority(all(), &params, r, s).unwrap() == expected);
    let expected = theirs::create_random_proof_batch(all(), &read, &mut rng()).unwrap();
    assert!(create_random_proof_batch(all(), &params, &mut rng()).unwrap() == expected);
    let prior = create_random_proof_batch_in_priority(all(), &params, &mut rng());
    assert!(prior.unwrap() == expected);
    let (r, s) = (scalars().0, vec![s0]);
    let refused = create_proof_batch(all(), &params, r, s);
    assert!(matches!(
        refused,
        Err(SynthesisError::IncompatibleLengthVector(_))
    ));
}

#[test]
fn parameters_are_read_from_a_stream_and_mapped_from_a_file() {
    let blank = Mimc::blank(9);
    let params = generate_random_parameters::<Bls12, _, _>(blank.clone(), &mut rng()).unwrap();
    let bytes = written(&params);
    let followed = [&bytes[..], b"more"].concat();
    let mut reader = &followed[..];
    let read = Parameters::<Bls12>::read(&mut reader, false).unwrap();
    assert_eq!(reader, b"more");
    assert!(read == params && written(&read) == bytes);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mimc.params");
    std::fs::write(&path, &bytes).unwrap();
    let mapped = Parameters::<Bls12>::build_mapped_parameters(path, true).unwrap();
    let circuit = blank.with([5, 6]);
    let image = circuit.image().unwrap();
    let proof = create_random_proof(circuit, &mapped, &mut rng()).unwrap();
    assert!(verify_proof(&mapped.pvk, &proof, &[image]).unwrap());
    assert!((&mapped).parameters() == &params);

    let cut = Parameters::<Bls12>::read(&bytes[..bytes.len() - 1], false);
    assert_eq!(cut.unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
    let mut damaged = bytes;
    damaged[900] ^= 1;
    Parameters::<Bls12>::read(&damaged[..], true).unwrap_err();
}

/// The row in an error of bellperson's type.
fn row(error: SynthesisError) -> Option<usize> {
    let SynthesisError::IoError(error) = error else {
        return None;
    };
    let inner = error.get_ref()?.downcast_ref::<ProveError>()?;
    inner.row()
}

/// The circuit is compiled with its parameters, or with its first proof.
#[test]
fn another_shape_is_refused_with_its_row() {
    let good = || squares(3, Fault::Coefficient);
    let bad = || squares(4, Fault::Coefficient);
    let generated = generate_random_parameters::<Bls12, _, _>(good(), &mut rng()).unwrap();
    let read = Parameters::<Bls12>::read(&written(&generated)[..], false).unwrap();
    for params in [generated, read] {
        let key = prepare_verifying_key(&params.vk);
        // The parameters do not get the circuit of an instance that was not proved.
        for _ in 0..2 {
            let refused = create_random_proof(bad(), &params, &mut rng()).unwrap_err();
            println!("{refused}");
        }
        let proof = create_random_proof(good(), &params, &mut rng()).unwrap();
        assert!(verify_proof(&key, &proof, &[]).unwrap());
        let refused = create_random_proof(bad(), &params, &mut rng()).unwrap_err();
        assert_eq!(row(refused), Some(7));
        let batch = vec![good(), good(), bad()];
        let refused = create_random_proof_batch(batch, &params, &mut rng()).unwrap_err();
        assert!(refused.to_string().contains("circuit 2 of the batch"));
        assert_eq!(row(refused), Some(7));
    }
}
