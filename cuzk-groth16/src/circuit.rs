//! A circuit, compiled once and shared by every proof of it.
//!
//! Not a statement: it holds no input and no witness. The invariant: a circuit that was
//! opened from a file has the name that it was asked for by.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use blstrs::Scalar;
use cuzk_kernels::ntt::Domain;
use cuzk_kernels::{Isa, KernelError};
use cuzk_memory::Checkpoint;
use cuzk_pce::disk::{DiskError, DiskFault};
use cuzk_pce::program::UnfoldError;
use cuzk_pce::{Columns, Densities, Fingerprint, Program, R1cs, VariableCounts, program};
use rayon::ThreadPool;

use crate::apart::on_threads_like;
use crate::circuit_sizes::CircuitSizes;
pub use crate::circuit_sizes::Wide;
use crate::once_map::OnceMap;
use crate::query_lengths::QueryLengths;
use crate::{Error, Result};

/// The form in which a circuit's rows are evaluated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CircuitForm {
    /// Distinct rows, and a grammar of their order.
    #[default]
    Compiled,
    /// Plain sparse matrices (CSR). They are a thousand times as large.
    Plain,
}

impl CircuitForm {
    /// Both forms.
    pub const ALL: [Self; 2] = [Self::Compiled, Self::Plain];

    /// Returns the name that the configuration uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compiled => "compiled",
            Self::Plain => "plain",
        }
    }
}

/// A compiled circuit with what proving needs to know about it.
#[derive(Debug)]
pub struct Circuit {
    name: String,
    program: Program<Scalar>,
    /// See [`Self::written_in_parts`].
    part_variables: usize,
    /// The counts of variables that the circuit's file announces.
    announced: Option<VariableCounts>,
    densities: OnceLock<Densities>,
    variables: OnceLock<VariableCounts>,
    /// By the instructions that their tables are for.
    domains: OnceMap<&'static str, Domain>,
    plain: OnceMap<(), R1cs<Scalar>>,
}

impl Circuit {
    /// The circuit `name`, whose constraints are `program`.
    pub fn new(name: impl Into<String>, program: Program<Scalar>) -> Self {
        Self {
            name: name.into(),
            program,
            part_variables: usize::MAX,
            announced: None,
            densities: OnceLock::new(),
            variables: OnceLock::new(),
            domains: OnceMap::default(),
            plain: OnceMap::default(),
        }
    }

    /// Returns the circuit, of which a writer of witnesses has at most so many variables a
    /// thread apart before it joins them. Of another circuit, a writer may have all variables
    /// apart, and so a witness takes twice its memory while it is written.
    #[must_use]
    pub fn written_in_parts(self, variables_a_thread: usize) -> Self {
        Self {
            part_variables: variables_a_thread,
            ..self
        }
    }

    /// Maps the circuit `name` from a file that [`Circuit::write`] made. Its rows are not walked
    /// through: the first call that asks for the densities or the sizes does that.
    ///
    /// # Errors
    /// A file that is damaged, of another version, or of another circuit.
    pub fn open(name: &str, path: &Path) -> Result<Self> {
        let (header, program) = program::map(path, None)?;
        if header.label != name {
            return Err(Error::OtherCircuit {
                path: path.to_owned(),
                expected: name.to_owned(),
                got: header.label,
            });
        }
        Ok(Self {
            announced: header.variables,
            ..Self::new(name, program)
        })
    }

    /// The circuit `name`, mapped from the file `path` if it is there, else compiled by
    /// `compile` and written there for the next start. A file that cannot be used is
    /// replaced. A folder that cannot be written costs the next start its time and nothing
    /// else. Processes that build at once end with one good file.
    ///
    /// # Errors
    /// The error of `compile`. Nothing is written then.
    pub fn cached<E>(
        name: &str,
        path: &Path,
        compile: impl FnOnce() -> std::result::Result<Program<Scalar>, E>,
    ) -> std::result::Result<Self, E> {
        match Self::open(name, path) {
            Ok(circuit) => return Ok(circuit),
            Err(Error::CircuitFile(error)) if is_missing(&error) => {
                tracing::info!(
                    circuit = name,
                    "compiling the circuit, once for this machine"
                );
            }
            Err(error) => {
                tracing::warn!(%error, "compiling the circuit again, since its file cannot be used");
            }
        }
        let circuit = Self::new(name, compile()?);
        match circuit.write_in_new_folder(path) {
            // Used where it lies, so that all processes share one copy.
            Ok(()) => Ok(Self::open(name, path).unwrap_or(circuit)),
            Err(error) => {
                tracing::warn!(%error, "the compiled circuit was not kept for the next start");
                Ok(circuit)
            }
        }
    }

    /// Writes the circuit to `path`, whose folder is made if there is none.
    fn write_in_new_folder(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
        }
        self.write(path)
    }

    /// Returns the circuit's name, which its file says.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the constraints.
    #[must_use]
    pub fn program(&self) -> &Program<Scalar> {
        &self.program
    }

    /// Returns the variables that the queries of a proof run over. The first call counts
    /// them, which takes a second or two at 32 GiB.
    #[must_use]
    pub fn densities(&self) -> &Densities {
        self.densities.get_or_init(|| self.program.densities())
    }

    /// Returns how many variables of each sort the rows have. The first call counts them, like
    /// the densities.
    fn variable_counts(&self) -> VariableCounts {
        *self.variables.get_or_init(|| {
            let counted = VariableCounts::of(self.densities(), &self.program.boolean_columns());
            if self.announced.is_some_and(|announced| announced != counted) {
                tracing::warn!(
                    circuit = self.name,
                    "the circuit's file announces other sizes than its rows have; delete it, and \
                     it is made again"
                );
            }
            counted
        })
    }

    /// Returns the sizes from which the memory of a partition follows. The first call counts
    /// the variables, like the densities.
    #[must_use]
    pub fn sizes(&self) -> CircuitSizes {
        self.sizes_with(self.variable_counts())
    }

    /// Returns the sizes that the circuit's file announces, without a look at the rows. Returns
    /// `None` if there is no file, or if it announces none: it is of an earlier version, or has
    /// plain rows.
    #[must_use]
    pub fn announced_sizes(&self) -> Option<CircuitSizes> {
        self.announced.map(|variables| self.sizes_with(variables))
    }

    fn sizes_with(&self, variables: VariableCounts) -> CircuitSizes {
        CircuitSizes::of(&self.program, variables, self.part_variables)
    }

    /// Returns how many auxiliary variables the rows do not prove to be bits. The first
    /// call counts them, like the densities.
    #[must_use]
    pub fn wide(&self) -> Wide {
        Wide::of(&self.variable_counts())
    }

    /// Returns the rows as plain matrices. The first call unfolds them, on its own thread.
    /// That takes seconds, or minutes at 32 GiB. It ends soon after `checkpoint` is
    /// cancelled. Then the next thread that asks begins anew, also one that waited.
    ///
    /// # Errors
    /// A circuit with more terms than 32 bits can number, and [`Error::Stopped`].
    pub fn plain_rows(&self, checkpoint: &Checkpoint<'_>) -> Result<Arc<R1cs<Scalar>>> {
        self.plain.get_or_make_unless_stopped((), checkpoint, || {
            let rows = self.program.to_r1cs_unless_stopped(checkpoint);
            rows.map_err(|error| match error {
                UnfoldError::Stopped(stopped) => stopped.into(),
                UnfoldError::Csr(error) => Error::Evaluation {
                    stage: "plain rows",
                    problem: error.to_string(),
                },
            })
        })
    }

    /// Returns a digest of the constraints.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.program.fingerprint()
    }

    /// Returns the number of points of each query of the circuit's parameters.
    #[must_use]
    pub fn query_lengths(&self) -> QueryLengths {
        QueryLengths::of(&self.program, self.densities())
    }

    /// Returns the size of the domain of a proof's polynomials. That is the constraints
    /// and one row more for each public input, rounded up to a power of two.
    #[must_use]
    pub fn domain_len(&self) -> usize {
        (self.program.rows() + self.program.num_inputs()).next_power_of_two()
    }

    /// Returns the domain, with its table of roots for these instructions. The first call
    /// makes it, on as many new threads as `pool` has. The pool's own threads may all stand
    /// still for urgent work, and that work may be waiting for this domain. They make it
    /// only if the system has no other threads.
    ///
    /// # Errors
    /// A circuit that is larger than any domain, and a system without a thread for a caller
    /// that belongs to another pool.
    pub fn domain(
        &self,
        isa: Isa,
        pool: &ThreadPool,
    ) -> std::result::Result<Arc<Domain>, KernelError> {
        let log_size = self.domain_len().trailing_zeros();
        let make = || Domain::with(isa, log_size);
        self.domains.get_or_make(isa.name(), || {
            on_threads_like(pool, "domain", make).unwrap_or_else(|error| {
                let error = io::Error::other(error);
                Err(KernelError::Memory(error))
            })
        })
    }

    /// Returns the first row that `witness` does not satisfy, if there is one.
    ///
    /// # Errors
    /// A witness of another circuit's shape.
    pub fn first_bad_row<W: Columns<Scalar>>(&self, witness: &W) -> Result<Option<usize>> {
        program::check(&self.program, witness).map_err(|error| Error::Evaluation {
            stage: "check",
            problem: error.to_string(),
        })
    }

    /// Writes the circuit to `path`, whole or not at all.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn write(&self, path: &Path) -> Result<()> {
        Ok(program::write(path, &self.program, &self.name)?)
    }
}

fn is_missing(error: &DiskError) -> bool {
    matches!(&error.fault, DiskFault::Io(error) if error.kind() == std::io::ErrorKind::NotFound)
}
