//! The parameter cache: a folder of `.params` and `.vk` files.
//!
//! It knows files by the names that it is given, not circuits. The invariants:
//!
//! * Each file is opened at most once, and shared.
//! * A file comes into the folder whole, by renaming, and never over another.
//! * One process at a time makes a file.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bellperson::groth16::{PreparedVerifyingKey, VerifyingKey, prepare_verifying_key};
use blstrs::{Bls12, Scalar};
use cuzk_kernels::Isa;
use cuzk_memory::{Checkpoint, NEVER_STOP, Stopped};
use cuzk_pce::Program;

use super::error::ParamsError;
use super::file::read_verifying_key;
use super::generate::generate_while;
use super::mapped::MappedParams;
use super::multiples::beside;
use super::new_file::{Stoppable, created, lock_or_wait, write_key, write_new};
use super::toxic_waste::ToxicWaste;
use crate::apart::{current_threads, on_new_threads};
use crate::once_map::OnceMap;
use crate::query_lengths::QueryLengths;

/// The files of one circuit, by name within the cache.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ParameterFiles {
    /// The `.params` file.
    pub params: String,
    /// The `.vk` file.
    pub vk: String,
}

/// How test parameters are made. The default is seed 0 and this machine's fastest
/// instructions.
#[derive(Debug, Clone, Copy, Default)]
pub struct GenerateOptions {
    /// Seed of the toxic waste; see [`ToxicWaste::from_seed`].
    pub seed: u64,
    /// The instructions to compute with.
    pub isa: Isa,
}

/// The outcome of [`ParamCache::ensure_generated`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Usable parameters existed, from whichever seed or source.
    AlreadyThere,
    /// Usable parameters existed without the file of their key, which was written again.
    KeyRestored,
    /// They were made, from the seed.
    Made,
}

/// Parameters in use, with their verifying key prepared for verification.
pub struct LoadedParams {
    mapped: Arc<MappedParams>,
    prepared_key: PreparedVerifyingKey<Bls12>,
    loading: Loading,
}

/// One of the times that this process loaded parameters. Proofs that are verified under
/// one key have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loading(u64);

impl Loading {
    /// Of a key by itself, without its parameters.
    pub const KEY_ALONE: Self = Self(0);

    /// A loading that is like no other of this process.
    #[must_use]
    pub fn begin() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Debug for LoadedParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedParams")
            .field("path", &self.mapped.path())
            .finish_non_exhaustive()
    }
}

impl LoadedParams {
    /// The parameters.
    #[must_use]
    pub fn mapped(&self) -> &Arc<MappedParams> {
        &self.mapped
    }

    /// Returns the loading that these parameters are of.
    #[must_use]
    pub fn loading(&self) -> Loading {
        self.loading
    }

    /// The verifying key, ready to verify with.
    #[must_use]
    pub fn prepared_key(&self) -> &PreparedVerifyingKey<Bls12> {
        &self.prepared_key
    }
}

/// A folder of parameters.
pub struct ParamCache {
    dir: PathBuf,
    loaded: OnceMap<ParameterFiles, LoadedParams>,
    keys: OnceMap<String, PreparedVerifyingKey<Bls12>>,
    /// How many new threads prepare a key, if they are not as many as the caller's pool has.
    threads: Option<usize>,
}

impl fmt::Debug for ParamCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParamCache")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

impl ParamCache {
    /// The cache in `dir`, which need not exist yet.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            loaded: OnceMap::default(),
            keys: OnceMap::default(),
            threads: None,
        }
    }

    /// Returns the cache with verifying keys prepared on so many new threads. Without this
    /// call, they are as many as the caller's pool has, or as the system offers. A key is
    /// prepared once, while other threads wait for it: a pool with other work could come to wait
    /// for those.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        let threads = Some(threads);
        Self { threads, ..self }
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the parameters of `files` are, or would be.
    #[must_use]
    pub fn params_path(&self, files: &ParameterFiles) -> PathBuf {
        self.dir.join(&files.params)
    }

    /// Where the verifying key of `files` is, or would be.
    #[must_use]
    pub fn vk_path(&self, files: &ParameterFiles) -> PathBuf {
        self.dir.join(&files.vk)
    }

    /// Where the multiples of the parameters of `files` are, or would be.
    #[must_use]
    pub fn multiples_path(&self, files: &ParameterFiles) -> PathBuf {
        beside(&self.params_path(files))
    }

    /// Returns true if both files exist. It does not look into them.
    #[must_use]
    pub fn has(&self, files: &ParameterFiles) -> bool {
        self.params_path(files).is_file() && self.vk_path(files).is_file()
    }

    /// Returns the parameters of a circuit. The first thread that asks maps them.
    ///
    /// # Errors
    ///
    /// As [`MappedParams::open`] for either file, and
    /// [`ParamsError::KeysDiffer`] and [`ParamsError::OtherCircuit`] when they
    /// fit neither each other nor the circuit.
    pub fn load(
        &self,
        files: &ParameterFiles,
        lengths: &QueryLengths,
    ) -> Result<Arc<LoadedParams>, ParamsError> {
        self.load_unless_stopped(files, lengths, &NEVER_STOP)
    }

    /// As [`Self::load`]. A thread that waits for another to map them asks every millisecond
    /// or so if `checkpoint` is cancelled; it never pauses.
    ///
    /// # Errors
    ///
    /// As [`Self::load`], and [`Stopped`].
    pub fn load_unless_stopped<E: From<ParamsError> + From<Stopped>>(
        &self,
        files: &ParameterFiles,
        lengths: &QueryLengths,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Arc<LoadedParams>, E> {
        let open = || Ok::<_, E>(self.open(files)?);
        let loaded = (self.loaded).get_or_make_unless_stopped(files.clone(), checkpoint, open)?;
        loaded.mapped.check_circuit(lengths)?;
        Ok(loaded)
    }

    /// The parameters of a circuit, if they are loaded.
    #[must_use]
    pub fn loaded(&self, files: &ParameterFiles) -> Option<Arc<LoadedParams>> {
        self.loaded.made(files)
    }

    /// Loads the parameters of a circuit anew. The parameters that were loaded live on with
    /// their users.
    ///
    /// # Errors
    ///
    /// As [`Self::load`]; the loaded parameters stay then.
    pub fn reload(
        &self,
        files: &ParameterFiles,
        lengths: &QueryLengths,
    ) -> Result<(), ParamsError> {
        let loaded = self.open(files)?;
        loaded.mapped.check_circuit(lengths)?;
        self.loaded.replace(files.clone(), loaded);
        self.keys.remove(&files.vk);
        Ok(())
    }

    /// Lets go of the parameters of a circuit. Their users keep them until they end.
    pub fn evict(&self, files: &ParameterFiles) {
        self.loaded.remove(files);
        self.keys.remove(&files.vk);
    }

    fn open(&self, files: &ParameterFiles) -> Result<LoadedParams, ParamsError> {
        let mapped = MappedParams::open(&self.params_path(files))?;
        mapped.check_key(&self.vk_path(files))?;
        Ok(LoadedParams {
            prepared_key: self.prepare(mapped.vk())?,
            mapped: Arc::new(mapped),
            loading: Loading::begin(),
        })
    }

    /// The verifying key alone, which is enough to verify.
    ///
    /// # Errors
    ///
    /// As [`read_verifying_key`].
    pub fn verifying_key(
        &self,
        files: &ParameterFiles,
    ) -> Result<Arc<PreparedVerifyingKey<Bls12>>, ParamsError> {
        self.keys.get_or_make(files.vk.clone(), || {
            self.prepare(&read_verifying_key(&self.vk_path(files))?)
        })
    }

    fn prepare(
        &self,
        key: &VerifyingKey<Bls12>,
    ) -> Result<PreparedVerifyingKey<Bls12>, ParamsError> {
        let threads = self.threads.unwrap_or_else(current_threads);
        Ok(on_new_threads("key", threads, || {
            prepare_verifying_key(key)
        })?)
    }

    /// Makes insecure test parameters for `circuit`, unless the files exist. Anyone who
    /// knows the seed can forge proofs for them, so the caller decides whether these
    /// names may stand for insecure parameters. Several processes may ask at once: one
    /// makes them, on as many new threads as the caller's pool has, or as the system offers.
    /// The others wait. `progress` gets the points done and all points.
    ///
    /// # Errors
    ///
    /// An existing file that cannot be used, and a failure to write. No file is left half
    /// written, and none is replaced.
    pub fn ensure_generated(
        &self,
        files: &ParameterFiles,
        circuit: &Program<Scalar>,
        options: GenerateOptions,
        progress: impl FnMut(u64, u64) + Send,
    ) -> Result<Outcome, ParamsError> {
        self.ensure_generated_while(files, circuit, options, &NEVER_STOP, progress)
    }

    /// As [`Self::ensure_generated`]. A thread that waits, or writes points, looks every
    /// few seconds or more often if `checkpoint` is cancelled.
    ///
    /// # Errors
    ///
    /// As [`Self::ensure_generated`], and [`ParamsError::Stopped`].
    pub fn ensure_generated_while(
        &self,
        files: &ParameterFiles,
        circuit: &Program<Scalar>,
        options: GenerateOptions,
        checkpoint: &Checkpoint<'_>,
        mut progress: impl FnMut(u64, u64) + Send,
    ) -> Result<Outcome, ParamsError> {
        // So the work is compiled here, and not for each closure in the caller's crate.
        self.ensure_telling(files, circuit, (options, checkpoint), &mut progress)
    }

    fn ensure_telling(
        &self,
        files: &ParameterFiles,
        circuit: &Program<Scalar>,
        (options, checkpoint): (GenerateOptions, &Checkpoint<'_>),
        progress: &mut (dyn FnMut(u64, u64) + Send),
    ) -> Result<Outcome, ParamsError> {
        let lengths = QueryLengths::of(circuit, &circuit.densities());
        if self.has(files) {
            return self.load(files, &lengths).map(|_| Outcome::AlreadyThere);
        }
        self.check_is_folder()?;
        fs::create_dir_all(&self.dir).map_err(|source| created(&self.dir, source))?;
        // Waits until no other process makes these files. The lock goes with the file; its name
        // stays, since removing it would race.
        let lock = self.dir.join(format!("{}.lock", files.params));
        let _lock = lock_or_wait(&lock, &self.params_path(files), checkpoint)?;
        let outcome = if self.has(files) {
            Outcome::AlreadyThere
        } else {
            // Others wait for the lock, and may belong to the caller's pool.
            let make = || self.make(files, &lengths, circuit, (options, checkpoint), progress);
            on_new_threads("params", current_threads(), make)??
        };
        self.load(files, &lengths)?;
        Ok(outcome)
    }

    /// Checks that nothing else is where the folder is, or will be.
    ///
    /// # Errors
    ///
    /// [`ParamsError::NoFolder`].
    pub fn check_is_folder(&self) -> Result<(), ParamsError> {
        if self.dir.exists() && !self.dir.is_dir() {
            let path = self.dir.clone();
            return Err(ParamsError::NoFolder { path });
        }
        Ok(())
    }

    /// Makes the missing files, under the lock.
    fn make(
        &self,
        files: &ParameterFiles,
        lengths: &QueryLengths,
        circuit: &Program<Scalar>,
        (options, checkpoint): (GenerateOptions, &Checkpoint<'_>),
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Outcome, ParamsError> {
        let (params_path, vk_path) = (self.params_path(files), self.vk_path(files));
        if vk_path.exists() {
            return Err(ParamsError::KeyWithoutParams { vk: vk_path });
        }
        if params_path.exists() {
            // Only the key was lost, or not yet written.
            let mapped = MappedParams::open(&params_path)?;
            mapped.check_circuit(lengths)?;
            write_key(&vk_path, mapped.vk())?;
            return Ok(Outcome::KeyRestored);
        }
        let waste = ToxicWaste::from_seed(options.seed);
        let generated = write_new(&params_path, |writer| {
            let mut writer = Stoppable { writer, checkpoint };
            let (isa, out) = (options.isa, &mut writer);
            let generated = generate_while(circuit, &waste, isa, checkpoint, out, progress);
            generated.map_err(|source| match checkpoint.is_cancelled() {
                true => ParamsError::Stopped,
                false => ParamsError::Generate {
                    path: params_path.clone(),
                    source,
                },
            })
        })?;
        write_key(&vk_path, &generated.vk)?;
        Ok(Outcome::Made)
    }
}
