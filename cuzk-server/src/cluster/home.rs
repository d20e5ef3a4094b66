//! The daemon's engine, as the ledger of the cluster sees it.
//!
//! It decides nothing. The invariant: a proof of a node is given to the engine only after the
//! engine has verified it.

use std::sync::Arc;
use std::time::Duration;

use cuzk_cluster::ledger::{End, Others, Prover};
use cuzk_cluster::message::WorkId;
use cuzk_cluster::nats;
use cuzk_core::Error;
use cuzk_core::engine::{GiveBack, Remote};
use cuzk_core::error::ErrorCode;

use super::inputs::Inputs;
use super::table::Table;

/// The engine behind the table.
pub(super) struct Home {
    is_local: bool,
    remote: Remote,
    table: Arc<Table>,
    inputs: Arc<Inputs>,
}

impl Home {
    pub(super) fn new(
        is_local: bool,
        remote: Remote,
        table: Arc<Table>,
        inputs: Arc<Inputs>,
    ) -> Self {
        Self {
            is_local,
            remote,
            table,
            inputs,
        }
    }
}

impl nats::Home for Home {
    fn input(&self, id: &WorkId) -> Option<Vec<u8>> {
        let id = self.table.id(id)?;
        if let Some(input) = self.inputs.take(id) {
            return Some(input);
        }
        let statement = self.remote.statement(id)?;
        let input = statement.partition_request(id.partition);
        // It was made once before, to be offered.
        input
            .map_err(Error::from)
            .inspect_err(|error| {
                let code = ErrorCode::of(error);
                tracing::error!(%code, %error, "a partition cannot be sent again");
            })
            .ok()
    }

    fn verify(&self, id: &WorkId, proof: &[u8]) -> Option<bool> {
        let partition = self.table.id(id)?;
        match self.remote.verify(partition, proof) {
            Ok(proof) => {
                self.table.keep(id, proof);
                Some(true)
            }
            // It has ended, or the engine ends. The next start takes the result then.
            Err(Error::Stopped) => None,
            Err(error @ Error::Rejected { .. }) => {
                tracing::debug!(%id, %error, "the proof of another machine");
                Some(false)
            }
            Err(error) => {
                let code = ErrorCode::of(&error);
                tracing::error!(
                    %id, %code, %error,
                    "the proof of another machine cannot be verified"
                );
                self.remote.give_back(partition, GiveBack::Failed);
                None
            }
        }
    }

    fn prove(&self, id: &WorkId, others: Others) {
        let Some(id) = self.table.id(id) else {
            return;
        };
        // The engine asks the table where a partition can be proved that is given back.
        if others != Others::MayProve {
            self.table.keep_alone(id);
        }
        let reason = match others {
            Others::HaveFailed => GiveBack::Failed,
            Others::MayProve | Others::MayNot => GiveBack::Free,
        };
        self.remote.give_back(id, reason);
    }

    fn taken(&self, id: &WorkId) {
        // Outlives the lock of the table, which the end of the engine needs.
        let _engine = self.remote.engine();
        self.table.taken(id, |id| self.remote.begun(id));
    }

    fn returned(&self, id: &WorkId) {
        let _engine = self.remote.engine();
        self.table.returned(id, |id| {
            if self.is_local {
                self.remote.give_back(id, GiveBack::Free);
            }
        });
    }

    /// The engine drops it at its next stage, because it is proved.
    fn stop(&self, _: &WorkId) {}

    fn ended(&self, id: &WorkId, end: End) {
        let Some(ended) = self.table.end(id) else {
            return;
        };
        // The engine itself settles what it proves and what it cannot prove.
        if let (End::Proved { by, .. }, Some(proof)) = (end, ended.proof)
            && let Prover::Node(node) = by
        {
            let took = ended.taken.map_or(Duration::ZERO, |taken| taken.elapsed());
            self.remote.proved(ended.id, proof, node.as_str(), took);
        }
    }
}
