//! What partitions of a circuit share: the circuit, its parameters, multiples of
//! their points, and what each costs.
//!
//! Not a queue: who gets memory first is the dispatcher's to say. The invariants: an
//! asset is made once, by the first that asks; a partition that begins after
//! parameters were replaced on disk is proved, and verified, with the new ones,
//! unless these cannot be used.

pub(super) mod cost;
mod digest_checks;
mod files_in_use;
mod key;
mod multiples_queue;

use std::path::PathBuf;
use std::ptr;
use std::sync::Arc;

use bellperson::groth16::PreparedVerifyingKey;
use blstrs::Bls12;
use cuzk_filecoin::{CircuitId, ProofKind};
use cuzk_groth16::Circuit;
use cuzk_groth16::params::{LoadedParams, ParamCache, ParamsError};
use cuzk_kernels::Isa;
use cuzk_memory::Checkpoint;
use cuzk_scheduler::admission::Limits;
use rayon::ThreadPool;

use self::cost::{CostTable, KeyFiles};
use self::digest_checks::DigestChecks;
pub(super) use self::digest_checks::DigestState;
use self::files_in_use::FilesInUse;
pub(super) use self::key::AssetKey;
pub(super) use self::multiples_queue::MultiplesQueue;
use crate::aggregate::AggregationKeys;
use crate::circuits::{Circuits, cached_while, parameter_files};
use crate::config::Config;
use crate::error::ErrorCode;
use crate::metrics::{self, Evicted};
use crate::{Error, Result};

pub(super) struct Assets {
    pub(super) costs: CostTable,
    /// Circuits whose multiples are to be made in the background.
    pub(super) multiples: MultiplesQueue,
    /// Circuits whose parameters are compared with the network's digests.
    pub(super) digests: DigestChecks,
    /// Keys of the inner-product SRS.
    pub(super) aggregation: AggregationKeys,
    circuits: Arc<Circuits>,
    params: Arc<ParamCache>,
    in_use: FilesInUse,
    param_cache: PathBuf,
    isa: Isa,
    /// The kinds that are to have multiples; none if no device is this CPU, because
    /// GPUs do not use them.
    multiples_of: Vec<ProofKind>,
    #[cfg(test)]
    stays_loaded: bool,
}

impl Assets {
    /// `uses_multiples` is true if a device of the fleet is this CPU.
    pub(super) fn new(config: &Config, limits: &Limits, uses_multiples: bool) -> Self {
        let threads = config.synthesis.threads;
        let kinds = config.srs.multiples.iter().copied();
        Self {
            costs: CostTable::new(config, limits),
            multiples: MultiplesQueue::default(),
            digests: DigestChecks::new(config.srs.check_digests),
            aggregation: AggregationKeys::new(config),
            circuits: Arc::default(),
            params: Arc::new(ParamCache::new(&config.srs.param_cache).with_threads(threads)),
            in_use: FilesInUse::default(),
            param_cache: config.srs.param_cache.clone(),
            isa: config.cpu.isa,
            multiples_of: kinds.filter(|_| uses_multiples).collect(),
            #[cfg(test)]
            stays_loaded: false,
        }
    }

    /// Takes over what was loaded before. Loading takes a simulation more time than all else.
    /// If it `stays`, an eviction leaves it loaded.
    #[cfg(test)]
    pub(super) fn share(
        &mut self,
        circuits: &Arc<Circuits>,
        params: &Arc<ParamCache>,
        stays: bool,
    ) {
        self.circuits = Arc::clone(circuits);
        self.params = Arc::clone(params);
        self.stays_loaded = stays;
    }

    /// Returns the circuit, mapped or compiled under `checkpoint` by the first that asks.
    /// If that is stopped, one of those that wait for the circuit goes on.
    pub(super) fn circuit(
        &self,
        id: CircuitId,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Arc<Circuit>> {
        let read = || cached_while(id, &self.param_cache, checkpoint);
        self.circuits
            .get_or_make_unless_stopped(id, checkpoint, read)
    }

    /// Returns the circuit, if it is there or being made.
    pub(super) fn present_circuit(&self, id: CircuitId) -> Option<Arc<Circuit>> {
        self.circuits.get(&id)
    }

    /// Returns the circuit's parameters, mapped by the first that asks.
    /// [`Assets::follow_replaced`] is called before, for the newest files.
    pub(super) fn params(
        &self,
        id: CircuitId,
        circuit: &Circuit,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Arc<LoadedParams>> {
        let files = parameter_files(id)?;
        self.params
            .load_unless_stopped(&files, &circuit.query_lengths(), checkpoint)
    }

    /// Goes over to a circuit's new parameters if the files were replaced by usable ones.
    /// Returns those that were loaded before, for the devices to let go of. A pair is
    /// replaced one file after the other: until the second is there the old ones, which
    /// are mapped, go on.
    pub(super) fn follow_replaced(
        &self,
        id: CircuitId,
        circuit: &Circuit,
    ) -> Result<Option<Arc<LoadedParams>>> {
        let files = &parameter_files(id)?;
        let lengths = &circuit.query_lengths();
        let paths = [self.params.params_path(files), self.params.vk_path(files)];
        let Some((now, used)) = self.in_use.others(id, [&paths[0], &paths[1]]) else {
            return Ok(None);
        };
        let path = paths[0].display();
        // A mapped file that was written to is not the file that was opened.
        let is_whole = !now[0].is_same_file(&used[0]) || now[0] == used[0];
        let before = self.params.loaded(files);
        if is_whole && before.is_some() {
            if let Err(error) = self.params.reload(files, lengths) {
                self.in_use.refuse(id, now);
                tracing::warn!(
                    circuit = %id, %path, code = %ErrorCode::ParametersUnusable, %error,
                    "the parameters were replaced by files that cannot be used; partitions are \
                     proved with the old ones until they are replaced again"
                );
                return Ok(None);
            }
        } else {
            self.params.evict(files);
        }
        self.in_use.use_these(id, now);
        self.digests.forget(id);
        tracing::warn!(
            circuit = %id, %path,
            "the parameters were replaced; partitions that begin now are proved with the new ones"
        );
        Ok(before)
    }

    /// Returns the parameters that are loaded for a circuit.
    pub(super) fn loaded_params(&self, id: CircuitId) -> Option<Arc<LoadedParams>> {
        self.params.loaded(&parameter_files(id).ok()?)
    }

    /// Returns true if a partition that begins now would be proved with these parameters.
    pub(super) fn are_current(&self, id: CircuitId, params: &LoadedParams) -> bool {
        let loaded = self.loaded_params(id);
        loaded.is_some_and(|loaded| ptr::eq(&*loaded, params))
    }

    /// Returns the proving-key files of a partition that begins now, with the multiples
    /// that its MSMs will use. The first that asks opens the multiples, on `pool`.
    pub(super) fn key_files(
        &self,
        id: CircuitId,
        circuit: &Circuit,
        params: &LoadedParams,
        pool: &ThreadPool,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<KeyFiles> {
        let params = params.mapped();
        let shared = params.multiples_unless_stopped(circuit, self.isa, pool, checkpoint)?;
        if let Some(error) = shared.take_problem().map(Error::from) {
            let code = ErrorCode::of(&error);
            tracing::warn!(%code, %error, "this file of multiples is not used");
        }
        let wanted = shared.is_absent() && self.wants_multiples(id);
        if wanted || shared.is_outdated(params) {
            self.multiples.ask(id);
        }
        self.digests.ask(id);
        Ok(KeyFiles::new(params, shared.usable()))
    }

    /// Returns true if there are to be multiples for this circuit.
    pub(super) fn wants_multiples(&self, id: CircuitId) -> bool {
        self.multiples_of.contains(&id.kind)
    }

    /// Returns the verifying key of a circuit.
    pub(super) fn verifying_key(&self, id: CircuitId) -> Result<Arc<PreparedVerifyingKey<Bls12>>> {
        Ok(self.params.verifying_key(&parameter_files(id)?)?)
    }

    /// Checks that a circuit's parameters are there, before anything else is done.
    ///
    /// # Errors
    /// [`ParamsError::Missing`], and [`ParamsError::NoFolder`].
    pub(super) fn check_present(&self, id: CircuitId) -> Result<()> {
        let files = parameter_files(id)?;
        self.params.check_is_folder()?;
        let paths = [self.params.params_path(&files), self.params.vk_path(&files)];
        match paths.into_iter().find(|path| !path.is_file()) {
            Some(path) => Err(ParamsError::Missing { path }.into()),
            None => Ok(()),
        }
    }

    /// Lets go of an asset that nobody uses: of a circuit and its parameters, or of the keys
    /// for aggregations. Returns the circuit, for the devices to let go of it, too.
    pub(super) fn evict(&self, key: AssetKey) -> Option<Arc<Circuit>> {
        let AssetKey::Circuit(id) = key else {
            self.aggregation.forget();
            return None;
        };
        #[cfg(test)]
        if self.stays_loaded {
            return self.circuits.get(&id);
        }
        let circuit = self.circuits.remove(&id);
        metrics::evicted(Evicted::Circuit);
        if let Ok(files) = parameter_files(id) {
            self.params.evict(&files);
            metrics::evicted(Evicted::Params);
        }
        circuit
    }
}
