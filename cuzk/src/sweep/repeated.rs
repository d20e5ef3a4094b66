//! A statement of several partitions, made of one of few.
//!
//! Not a request that a provider sends. The bundled sector is small, so each of its
//! requests has one partition, while a PoRep of 32 GiB has ten. The invariant: every
//! partition has a witness and public inputs of the decoded statement.

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_filecoin::{CircuitId, Error, Statement, WitnessContext, Writer};
use cuzk_pce::PackedWitness;

/// A statement whose partitions come again and again.
pub(super) struct Repeated {
    statement: Arc<dyn Statement>,
    partitions: usize,
}

impl Repeated {
    /// Returns a statement of `partitions` partitions, which are those of `statement` in
    /// turn.
    pub(super) fn new(statement: Arc<dyn Statement>, partitions: usize) -> Self {
        Self {
            statement,
            partitions,
        }
    }

    /// Returns the partition of the decoded statement. A partition that does not exist is
    /// one that the decoded statement refuses.
    fn of_statement(&self, partition: usize) -> usize {
        if partition < self.partitions {
            partition % self.statement.partitions().max(1)
        } else {
            partition
        }
    }
}

impl Statement for Repeated {
    fn circuit(&self) -> CircuitId {
        self.statement.circuit()
    }

    fn partitions(&self) -> usize {
        self.partitions
    }

    fn writer(&self) -> Writer {
        self.statement.writer()
    }

    fn witness_in(
        &self,
        partition: usize,
        context: WitnessContext<'_>,
    ) -> Result<PackedWitness<Scalar>, Error> {
        let partition = self.of_statement(partition);
        self.statement.witness_in(partition, context)
    }

    fn public_inputs(&self, partition: usize) -> Result<Vec<Scalar>, Error> {
        self.statement.public_inputs(self.of_statement(partition))
    }

    fn partition_request(&self, partition: usize) -> Result<Vec<u8>, Error> {
        let partition = self.of_statement(partition);
        self.statement.partition_request(partition)
    }
}

#[cfg(test)]
mod tests {
    use cuzk_filecoin::{ProofKind, decode};

    use super::*;
    use crate::commands::demo::bundled_request;

    #[test]
    fn ten_partitions_are_those_of_the_request_in_turn() {
        let request = bundled_request(ProofKind::WindowPost).unwrap();
        let decoded: Arc<dyn Statement> = Arc::from(decode(&request).unwrap());
        let ten = Repeated::new(Arc::clone(&decoded), 10);
        assert_eq!((ten.partitions(), ten.circuit()), (10, decoded.circuit()));
        for partition in 0..10 {
            let of_request = partition % decoded.partitions();
            assert_eq!(
                ten.public_inputs(partition).unwrap(),
                decoded.public_inputs(of_request).unwrap()
            );
        }
        assert!(ten.public_inputs(10).is_err());
    }
}
