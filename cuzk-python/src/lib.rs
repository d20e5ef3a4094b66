//! The engine as a Python module.
//!
//! Not the package `cuzk`, which is Python's and adds what is awaited. The invariants: no call
//! that waits holds the interpreter's lock; each error has the number of its code as `code`.

mod interruptible;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use cuzk_core::aggregate::Cancellation;
use cuzk_core::config::Host;
use cuzk_core::engine::aggregate_while;
use cuzk_core::error::ErrorCode;
use cuzk_core::job::Outcome;
use cuzk_core::{AggregateRequest, Config, JobHandle, JobOptions};
use cuzk_ffi::signal::EndSignal;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

create_exception!(
    cuzk,
    Error,
    PyException,
    "An error of the engine. `code` is its number."
);

/// The longest that a call waits before it looks for signals such as Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

fn raised(py: Python<'_>, error: &cuzk_core::Error) -> PyErr {
    let code = ErrorCode::of(error);
    let raised = Error::new_err(code.after(error));
    match raised.value(py).setattr("code", code.number()) {
        Ok(()) => raised,
        Err(problem) => problem,
    }
}

/// Returns a time of the caller's; none for one without an end.
fn time(name: &str, seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let time = seconds.map(Duration::try_from_secs_f64).transpose();
    time.map_err(|error| PyValueError::new_err(format!("{name}: {error}; give seconds")))
}

/// A proving engine, on threads of its own.
#[pyclass(frozen, module = "cuzk._cuzk")]
struct Engine(cuzk_core::Engine);

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (toml = ""))]
    fn new(py: Python<'_>, toml: &str) -> PyResult<Self> {
        let started = py.detach(|| {
            let config = Config::parse(toml, "`toml`", &Host::detect())?;
            cuzk_core::Engine::start(config)
        });
        Ok(Self(started.map_err(|error| raised(py, &error))?))
    }

    #[pyo3(signature = (request, *, id = None, priority = None, deadline = None, waits = false))]
    fn submit(
        &self,
        py: Python<'_>,
        request: &[u8],
        id: Option<String>,
        priority: Option<&str>,
        deadline: Option<f64>,
        waits: bool,
    ) -> PyResult<Job> {
        let priority = priority.map(str::parse::<cuzk_core::Priority>).transpose();
        let options = JobOptions {
            id,
            priority: priority.map_err(|error| PyValueError::new_err(error.to_string()))?,
            deadline: time("deadline", deadline)?,
            waits,
        };
        let handle = py.detach(|| self.0.submit_bytes(request, options));
        Ok(Job {
            handle: handle.map_err(|error| raised(py, &error))?,
            signal: OnceLock::new(),
        })
    }

    fn aggregate<'py>(&self, py: Python<'py>, request: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let stop = Cancellation::default();
        let made = interruptible::run(py, &stop, || {
            let request = AggregateRequest::from_json(request)?;
            aggregate_while(&self.0, &request, &stop)
        })?;
        let made = made.map_err(|error| raised(py, &error))?;
        Ok(PyBytes::new(py, made.as_bytes()))
    }

    fn status(&self) -> PyResult<String> {
        let status = serde_json::to_string(&self.0.status());
        status.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[pyo3(signature = (patience = None))]
    fn end(&self, py: Python<'_>, patience: Option<f64>) -> PyResult<usize> {
        let patience = time("patience", patience)?.unwrap_or(Duration::MAX);
        Ok(py.detach(|| self.0.shutdown_within(patience)).len())
    }
}

/// A job of an engine.
#[pyclass(frozen, module = "cuzk._cuzk")]
struct Job {
    handle: JobHandle,
    signal: OnceLock<EndSignal>,
}

type Proof<'py> = Option<Bound<'py, PyBytes>>;

fn proof_of(py: Python<'_>, outcome: Option<Outcome>) -> PyResult<Proof<'_>> {
    match outcome {
        None => Ok(None),
        Some(Ok(proof)) => Ok(Some(PyBytes::new(py, proof.as_bytes()))),
        Some(Err(error)) => Err(raised(py, &error)),
    }
}

#[pymethods]
impl Job {
    fn poll<'py>(&self, py: Python<'py>) -> PyResult<Proof<'py>> {
        proof_of(py, self.handle.poll())
    }

    #[pyo3(signature = (timeout = None))]
    fn wait<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Proof<'py>> {
        let until = time("timeout", timeout)?.and_then(|time| Instant::now().checked_add(time));
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let step = left.unwrap_or(LOOK).min(LOOK);
            let outcome = py.detach(|| self.handle.wait_for(step));
            if outcome.is_some() || left == Some(Duration::ZERO) {
                return proof_of(py, outcome);
            }
            py.check_signals()?;
        }
    }

    fn cancel(&self) -> bool {
        self.handle.cancel()
    }

    fn progress(&self) -> (usize, usize) {
        let progress = self.handle.progress();
        (progress.partitions_done, progress.partitions)
    }

    fn fileno(&self) -> PyResult<i32> {
        if self.signal.get().is_none() {
            let signal = EndSignal::new(&self.handle).map_err(|error| {
                PyOSError::new_err(format!(
                    "no eventfd: {error}; close files, or raise `ulimit -n`"
                ))
            })?;
            // That of another thread may be there by now. Then this one is closed.
            let _ = self.signal.set(signal);
        }
        Ok(self.signal.get().map_or(-1, EndSignal::descriptor))
    }
}

#[pymodule]
fn _cuzk(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Engine>()?;
    module.add_class::<Job>()?;
    module.add("Error", module.py().get_type::<Error>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
