//! Workers that are not as they should be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuzk_cluster::message::{Failure, Work};
use cuzk_cluster::nats::{Node, Prover, Run, Settings};
use cuzk_cluster::subject::Fingerprint;
use cuzk_cluster::worker::{Ability, Capacity};
use cuzk_server::cluster::identity::Identities;

use crate::fixture::param_cache;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It returns garbage for whatever it is asked for.
    Liar,
    /// A liar of another version, whose circuits have other fingerprints.
    OtherVersion,
}

/// A worker in this process.
pub(crate) struct Double {
    node: Node,
    /// The partitions that it has got.
    begun: Arc<AtomicUsize>,
}

struct DoubleProver {
    kind: Kind,
    identities: Identities,
    begun: Arc<AtomicUsize>,
}

impl Double {
    pub(crate) async fn start(url: &str, name: &str, kind: Kind) -> Self {
        let settings = Settings {
            addresses: vec![url.to_owned()],
            ..Settings::default()
        };
        let begun = Arc::new(AtomicUsize::new(0));
        let prover = Box::new(DoubleProver {
            kind,
            identities: Identities::new(&param_cache()),
            begun: Arc::clone(&begun),
        });
        let name = name.parse().unwrap();
        let start = move || Node::start(&settings, name, prover).unwrap();
        let node = tokio::task::spawn_blocking(start).await.unwrap();
        Self { node, begun }
    }

    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    pub(crate) async fn end(self) {
        let dropped = tokio::task::spawn_blocking(move || drop(self.node));
        dropped.await.unwrap();
    }
}

impl Prover for DoubleProver {
    fn abilities(&self) -> Vec<Ability> {
        let present = self.identities.present().into_iter();
        let mut circuits: Vec<_> = present.map(|id| self.identities.of(id).unwrap()).collect();
        if self.kind == Kind::OtherVersion {
            circuits
                .iter_mut()
                .for_each(|circuit| circuit.fingerprint = Fingerprint([7; 32]));
        }
        let is_loaded = true;
        let circuits = circuits.into_iter();
        circuits
            .map(|circuit| Ability { circuit, is_loaded })
            .collect()
    }

    fn capacity(&self) -> Capacity {
        Capacity {
            common: 1,
            urgent: 1,
        }
    }

    fn prove(&self, _: &Work, _: &[u8], _: &Run) -> Result<Vec<u8>, Failure> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Ok(vec![0xc0; 192])
    }
}
