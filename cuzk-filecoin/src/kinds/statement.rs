//! A decoded request, ready to be proved partition by partition.
//!
//! A kind implements [`Kind`]; what others see of it is [`Statement`], and, in tests and
//! benchmarks, [`ReferenceStatement`].

use bellperson::groth16::{self, MappedParameters};
use bellperson::util_cs::witness_cs::WitnessCS;
use bellperson::{Circuit, ConstraintSystem};
use blstrs::{Bls12, Scalar};
use cuzk_kernels::Isa;
use cuzk_memory::NoMemory;
use cuzk_pce::cell::{CheckedCircuit, check_circuit};
use cuzk_pce::{DigestedCircuit, ErasedCircuit, PackedWitness, digest_circuit};
use cuzk_witness::{Context as WitnessContext, WriteError};

use crate::Error;
use crate::circuit_id::CircuitId;

/// How a witness comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// Written in the circuit's order, without the circuit.
    Native,
    /// Collected while the circuit is synthesised.
    Circuit,
}

/// A statement with its verified vanilla proof, shared by all its partitions.
///
/// Everything is by partition, `0..partitions()`, and may run at once on
/// different threads.
pub trait Statement: Send + Sync {
    /// The circuit that every partition instantiates.
    fn circuit(&self) -> CircuitId;

    /// How many proofs make up the whole.
    fn partitions(&self) -> usize;

    /// Returns how [`witness_in`](Self::witness_in) makes a witness.
    fn writer(&self) -> Writer;

    /// Returns the partition's witness, made with this machine's fastest instructions, on the heap.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] for a partition that there is not,
    /// [`Error::Synthesis`] when the circuit fails, [`Error::NoMemory`].
    fn witness(&self, partition: usize) -> Result<PackedWitness<Scalar>, Error> {
        self.witness_in(partition, Isa::best().into())
    }

    /// Returns the partition's witness. A native [`writer`](Self::writer) takes its
    /// instructions, memory and checkpoint from `context`.
    ///
    /// # Errors
    ///
    /// As [`witness`](Self::witness), and [`Error::Stopped`] if its checkpoint stops it.
    fn witness_in(
        &self,
        partition: usize,
        context: WitnessContext<'_>,
    ) -> Result<PackedWitness<Scalar>, Error>;

    /// The partition's public inputs without the leading ONE, as a verifier
    /// computes them: from the statement, not from the witness.
    ///
    /// # Errors
    ///
    /// As [`witness`](Self::witness).
    fn public_inputs(&self, partition: usize) -> Result<Vec<Scalar>, Error>;

    /// Returns the partition as bytes, for another machine to prove.
    /// [`decode_partition`](crate::decode_partition) reads them. The vanilla proof of this
    /// partition is almost all of them.
    ///
    /// # Errors
    ///
    /// As [`witness`](Self::witness).
    fn partition_request(&self, partition: usize) -> Result<Vec<u8>, Error>;
}

/// A statement that bellperson can prove, too. Tests hold [`Statement`]'s answers against
/// its own, and benchmarks compare them.
pub trait ReferenceStatement: Statement {
    /// Returns the partition's witness as bellperson computes it, the peer of
    /// [`witness`](Statement::witness). Its inputs start with ONE. A PoSt's inputs have
    /// another ONE before each group of sectors, since [`WitnessCS`] starts every
    /// extension with one.
    ///
    /// # Errors
    ///
    /// As [`witness`](Statement::witness).
    fn reference_witness(&self, partition: usize) -> Result<WitnessCS<Scalar>, Error>;

    /// Returns the partition's circuit, synthesised with its values in a checked memory.
    /// That memory finds variables that are read before they are written, or written
    /// twice. For tests: it takes 64 bytes a variable, and a circuit's whole synthesis.
    ///
    /// # Errors
    ///
    /// As [`witness`](Statement::witness).
    fn checked_circuit(&self, partition: usize) -> Result<CheckedCircuit, Error>;

    /// Returns digests of the partition's witness and rows, as bellperson's prover computes them.
    /// They are the peer of [`witness`](Statement::witness) and of its evaluation. They need less
    /// memory than a [`reference_proof`](Self::reference_proof). For tests: see
    /// [`digest_circuit`].
    ///
    /// # Errors
    ///
    /// As [`witness`](Statement::witness).
    fn digested_circuit(&self, partition: usize) -> Result<DigestedCircuit<Scalar>, Error>;

    /// Returns the partition's proof as bellperson makes it with the given randomness:
    /// the known answer for the whole prover, and the peer in benchmarks.
    ///
    /// # Errors
    ///
    /// As [`witness`](Statement::witness).
    fn reference_proof(
        &self,
        partition: usize,
        parameters: &MappedParameters<Bls12>,
        r: Scalar,
        s: Scalar,
    ) -> Result<groth16::Proof<Bls12>, Error>;
}

/// The part of a statement that each kind implements.
pub(super) trait Kind: Send + Sync {
    type Circuit: Circuit<Scalar> + Send;

    fn id(&self) -> CircuitId;

    fn partitions(&self) -> usize;

    /// The circuit of a partition below `partitions()`, with its values.
    fn instance(&self, partition: usize) -> anyhow::Result<Self::Circuit>;

    /// The public inputs of a partition below `partitions()`.
    fn public_inputs(&self, partition: usize) -> anyhow::Result<Vec<Scalar>>;

    /// Returns a partition below `partitions()` as bytes.
    fn partition_request(&self, partition: usize) -> anyhow::Result<Vec<u8>>;

    /// Returns the writer of witnesses without the circuit.
    fn native(&self) -> &dyn Native;
}

/// Writes witnesses without the circuit.
pub(super) trait Native {
    /// The witness of a partition below `partitions()`, bit for bit that of
    /// its instance.
    fn write(
        &self,
        partition: usize,
        context: WitnessContext<'_>,
    ) -> anyhow::Result<PackedWitness<Scalar>>;
}

/// The instance of a partition, if there is such a partition.
fn instance<K: Kind>(statement: &K, partition: usize) -> Result<K::Circuit, Error> {
    check_partition(statement, partition)?;
    statement
        .instance(partition)
        .map_err(|problem| Error::synthesis("circuit", &problem))
}

fn check_partition<K: Kind>(statement: &K, partition: usize) -> Result<(), Error> {
    let partitions = statement.partitions();
    if partition < partitions {
        return Ok(());
    }
    Err(Error::request(
        "partition",
        format!("expected a number below {partitions}, got {partition}"),
        "partitions are numbered from 0",
    ))
}

impl<K: Kind> Statement for K {
    fn circuit(&self) -> CircuitId {
        self.id()
    }

    fn partitions(&self) -> usize {
        Kind::partitions(self)
    }

    fn writer(&self) -> Writer {
        Writer::Native
    }

    fn witness_in(
        &self,
        partition: usize,
        context: WitnessContext<'_>,
    ) -> Result<PackedWitness<Scalar>, Error> {
        check_partition(self, partition)?;
        let written = NoMemory::catch(|| self.native().write(partition, context))?;
        written.map_err(|problem| match problem.downcast_ref() {
            Some(WriteError::Stopped) => Error::Stopped,
            _ => Error::synthesis("witness", &problem),
        })
    }

    fn public_inputs(&self, partition: usize) -> Result<Vec<Scalar>, Error> {
        check_partition(self, partition)?;
        Kind::public_inputs(self, partition)
            .map_err(|problem| Error::synthesis("public inputs", &problem))
    }

    fn partition_request(&self, partition: usize) -> Result<Vec<u8>, Error> {
        check_partition(self, partition)?;
        Kind::partition_request(self, partition)
            .map_err(|problem| Error::synthesis("partition request", &problem))
    }
}

impl<K: Kind> ReferenceStatement for K {
    fn reference_witness(&self, partition: usize) -> Result<WitnessCS<Scalar>, Error> {
        let mut system = WitnessCS::new();
        instance(self, partition)?
            .synthesize(&mut system)
            .map_err(|problem| Error::synthesis("reference witness", &problem))?;
        Ok(system)
    }

    fn checked_circuit(&self, partition: usize) -> Result<CheckedCircuit, Error> {
        check_circuit(ErasedCircuit::new(instance(self, partition)?))
            .map_err(|problem| Error::synthesis("checked circuit", &problem))
    }

    fn digested_circuit(&self, partition: usize) -> Result<DigestedCircuit<Scalar>, Error> {
        digest_circuit(instance(self, partition)?)
            .map_err(|problem| Error::synthesis("digested circuit", &problem))
    }

    fn reference_proof(
        &self,
        partition: usize,
        parameters: &MappedParameters<Bls12>,
        r: Scalar,
        s: Scalar,
    ) -> Result<groth16::Proof<Bls12>, Error> {
        groth16::create_proof(instance(self, partition)?, parameters, r, s)
            .map_err(|problem| Error::synthesis("reference proof", &problem))
    }
}

#[cfg(test)]
mod tests {
    use bellperson::SynthesisError;
    use cuzk_pce::PackedBuilder;

    use super::*;
    use crate::proof_kind::ProofKind;
    use crate::sector_size::SectorSize;

    /// Has a witness that no machine has memory for.
    struct Endless;

    /// More than a machine has addresses for.
    const WORDS: usize = 1 << 48;

    impl Circuit<Scalar> for Endless {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            _: &mut CS,
        ) -> Result<(), SynthesisError> {
            Ok(())
        }
    }

    impl Native for Endless {
        fn write(
            &self,
            _: usize,
            context: WitnessContext<'_>,
        ) -> anyhow::Result<PackedWitness<Scalar>> {
            let builder = PackedBuilder::with_capacity_in(context.memory, 64 * WORDS, 0);
            Ok(builder.finish()?)
        }
    }

    impl Kind for Endless {
        type Circuit = Self;

        fn id(&self) -> CircuitId {
            CircuitId {
                kind: ProofKind::Porep,
                sector_size: SectorSize::KiB2,
            }
        }

        fn partitions(&self) -> usize {
            1
        }

        fn instance(&self, _: usize) -> anyhow::Result<Self> {
            Ok(Self)
        }

        fn public_inputs(&self, _: usize) -> anyhow::Result<Vec<Scalar>> {
            Ok(Vec::new())
        }

        fn partition_request(&self, _: usize) -> anyhow::Result<Vec<u8>> {
            anyhow::bail!("endless")
        }

        fn native(&self) -> &dyn Native {
            self
        }
    }

    #[test]
    fn a_witness_without_memory_is_an_error() {
        let error = Statement::witness(&Endless, 0).unwrap_err();
        let Error::NoMemory(asked) = error else {
            panic!("{error}");
        };
        assert!(asked.bytes >= 8 * WORDS, "{asked}");
    }
}
