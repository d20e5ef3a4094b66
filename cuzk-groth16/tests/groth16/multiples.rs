//! Files of multiples: what is opened is what was written, and nothing else is.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use cuzk_filecoin::ProofKind;
use cuzk_groth16::Circuit;
use cuzk_groth16::params::{
    GenerateOptions, LoadedParams, MappedMultiples, ParamCache, ParamsError, WrittenMultiples,
    multiples_path, planned_multiples, write_multiples,
};
use cuzk_kernels::{Context, Isa};
use cuzk_memory::{Checkpoint, Stopped};
use rayon::{ThreadPool, ThreadPoolBuilder};
use tempfile::TempDir;

/// The page that the header is in.
pub(crate) const HEADER_BYTES: usize = 4096;

pub(crate) struct Case {
    folder: TempDir,
    circuit: Arc<Circuit>,
    params: Arc<LoadedParams>,
}

impl Case {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        cuzk_testing::copy_params(ProofKind::WindowPost, &crate::param_cache(), folder.path());
        let circuit = crate::circuit_with_params(ProofKind::WindowPost);
        let files = cuzk_testing::files(ProofKind::WindowPost);
        let params = ParamCache::new(folder.path())
            .load(&files, &circuit.query_lengths())
            .unwrap();
        Self {
            folder,
            circuit,
            params,
        }
    }

    pub(crate) fn write(&self, limit_bytes: u64) -> Result<WrittenMultiples, ParamsError> {
        write_multiples(
            self.params.mapped(),
            self.circuit.program(),
            self.circuit.densities(),
            Isa::best().into(),
            (2, limit_bytes),
            |_| (),
        )
    }

    pub(crate) fn open(&self, isa: Isa) -> Result<Option<MappedMultiples>, ParamsError> {
        let (program, densities) = (self.circuit.program(), self.circuit.densities());
        MappedMultiples::open(self.params.mapped(), program, densities, isa)
    }

    /// Why the file cannot be used.
    pub(crate) fn problem(&self, isa: Isa) -> String {
        let error = self.open(isa).unwrap_err();
        assert!(matches!(error, ParamsError::Multiples { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("make it anew"), "{text}");
        text
    }

    /// Returns whether a prover has multiples, and whether it could have others.
    fn shared(&self, isa: Isa) -> (bool, bool) {
        let params = self.params.mapped();
        let shared = params.multiples(&self.circuit, isa, &pool());
        (shared.usable().is_some(), shared.is_outdated(params))
    }

    fn renew(&self, context: Context<'_>) -> Result<bool, ParamsError> {
        self.renew_or_make(context, false)
    }

    fn renew_or_make(&self, context: Context<'_>, wanted: bool) -> Result<bool, ParamsError> {
        let params = self.params.mapped();
        pool().install(|| params.renew_multiples(&self.circuit, context, 2, wanted))
    }

    pub(crate) fn path(&self) -> PathBuf {
        multiples_path(self.params.mapped())
    }
}

fn pool() -> ThreadPool {
    ThreadPoolBuilder::new().build().unwrap()
}

/// Stops at once.
fn stop() -> Checkpoint<'static> {
    Checkpoint::asking(|| true)
}

/// For a job that has ended nobody reads on, nor at an engine's end: it may be a slow disk.
#[test]
fn a_reading_stops_and_leaves_nothing() {
    let case = Case::new();
    if cuzk_kernels::testing::ifma().is_none() {
        return;
    }
    case.write(1 << 30).unwrap();
    let params = case.params.mapped();
    let stopped = params.multiples_unless_stopped(&case.circuit, Isa::best(), &pool(), &stop());
    assert_eq!(stopped.err(), Some(Stopped));
    let stop = stop();
    let context = Context {
        checkpoint: &stop,
        ..Isa::best().into()
    };
    assert!(matches!(case.renew(context), Err(ParamsError::Stopped)));
    assert_eq!(case.shared(Isa::best()), (true, false));
}

#[test]
fn what_was_written_is_opened() {
    let case = Case::new();
    assert!(case.open(Isa::best()).unwrap().is_none(), "not there yet");
    if cuzk_kernels::testing::ifma().is_none() {
        assert!(case.write(1 << 30).is_err());
        return;
    }
    for limit_bytes in [1 << 30, 40 << 20, 1 << 30] {
        let written = case.write(limit_bytes).unwrap();
        assert_eq!(written.path, case.path());
        assert_eq!(fs::metadata(case.path()).unwrap().len(), written.file_bytes);
        assert!(written.file_bytes <= limit_bytes + 5 * HEADER_BYTES as u64);
        assert!(written.rows.iter().all(|rows| (2..=32).contains(rows)));
        let opened = case.open(Isa::best()).unwrap().unwrap();
        assert!(opened.h().is_some() && opened.l().is_some());
        assert!(opened.a().is_some() && opened.b_g2().is_some());
        assert_eq!(opened.file_bytes() as u64, written.file_bytes);
        assert!(opened.shapes().h.is_some());
        let planned = planned_multiples(&case.circuit, Isa::best(), 2, limit_bytes);
        assert_eq!(planned.unwrap().0, opened.shapes());
    }
    let entries = fs::read_dir(case.folder.path()).unwrap().count();
    assert_eq!(entries, 3, "parameters, key and multiples");
}

/// Where two rows of all queries do not fit, the file has the wide variables' points only.
#[test]
fn a_smaller_limit_leaves_h_out() {
    let case = Case::new();
    if cuzk_kernels::testing::ifma().is_none() {
        return;
    }
    let mut limit_bytes = 40 << 20;
    let written = loop {
        let written = case.write(limit_bytes).unwrap();
        if written.rows[0] == 0 {
            break written;
        }
        limit_bytes /= 2;
        assert!(limit_bytes > 0, "a file of any size has rows of H");
    };
    assert!(written.file_bytes <= limit_bytes + 5 * HEADER_BYTES as u64);
    assert!(written.rows[1..].iter().all(|rows| (1..=32).contains(rows)));
    let opened = case.open(Isa::best()).unwrap().unwrap();
    assert!(opened.h().is_none() && opened.l().is_some());
    assert!(opened.a().is_some() && opened.b_g2().is_some());
    let planned = planned_multiples(&case.circuit, Isa::best(), 2, limit_bytes);
    let (shapes, rows_bytes) = planned.unwrap();
    assert_eq!(shapes, opened.shapes());
    assert!(rows_bytes <= limit_bytes && shapes.h.is_none());

    let mut bad = fs::read(case.path()).unwrap();
    *bad.last_mut().unwrap() ^= 1;
    fs::write(case.path(), &bad).unwrap();
    assert!(case.problem(Isa::best()).contains("damaged"));
}

#[test]
fn a_limit_that_leaves_no_room_is_an_error() {
    let case = Case::new();
    let error = case.write(1000).unwrap_err().to_string();
    assert!(error.contains("leave no room"), "{error}");
    assert!(!case.path().exists());
}

#[test]
fn a_file_of_something_else_is_refused() {
    let case = Case::new();
    if cuzk_kernels::testing::ifma().is_none() {
        return;
    }
    case.write(1 << 30).unwrap();
    assert!(case.problem(Isa::SCALAR).contains("instructions ifma"));

    // The same circuit's parameters from another seed.
    let other = tempfile::tempdir().unwrap();
    let cache = ParamCache::new(other.path());
    let files = cuzk_testing::files(ProofKind::WindowPost);
    let options = GenerateOptions {
        seed: 7,
        ..GenerateOptions::default()
    };
    let program = case.circuit.program();
    cache
        .ensure_generated(&files, program, options, |_, _| ())
        .unwrap();
    let params = cache.load(&files, &case.circuit.query_lengths()).unwrap();
    let moved = Case {
        folder: other,
        circuit: Arc::clone(&case.circuit),
        params,
    };
    fs::copy(case.path(), moved.path()).unwrap();
    assert!(moved.problem(Isa::best()).contains("for parameters"));
}

#[test]
fn a_stale_file_is_made_anew_within_its_makers_limit() {
    let case = Case::new();
    let best = Isa::best();
    assert_eq!(case.shared(best), (false, false), "nobody asked for any");
    assert!(!case.renew(best.into()).unwrap());
    assert!(!case.path().exists());
    if cuzk_kernels::testing::ifma().is_none() {
        return;
    }
    let written = case.write(40 << 20).unwrap();
    assert_eq!(case.shared(best), (false, true), "a file has come");
    assert!(!case.renew(best.into()).unwrap());
    assert_eq!(case.shared(best), (true, false));

    let other = Case::new();
    let mut bad = fs::read(case.path()).unwrap();
    *bad.last_mut().unwrap() ^= 1;
    fs::write(other.path(), &bad).unwrap();
    assert_eq!(other.shared(Isa::SCALAR), (false, false), "no form for it");
    assert_eq!(other.shared(best), (false, true));
    let shared = other
        .params
        .mapped()
        .multiples(&other.circuit, best, &pool());
    let problem = shared.take_problem().unwrap().to_string();
    assert!(problem.contains("make it anew"), "{problem}");
    assert!(shared.take_problem().is_none(), "it is told once");
    let stopped = other.renew(Context {
        checkpoint: &stop(),
        ..best.into()
    });
    assert!(matches!(stopped, Err(ParamsError::Stopped)));
    assert_eq!(other.shared(best), (false, true), "to be tried again");
    assert!(fs::read(other.path()).unwrap() == bad);
    assert!(other.renew(best.into()).unwrap());
    assert_eq!(other.shared(best), (true, false));
    let file_bytes = fs::metadata(other.path()).unwrap().len();
    assert_eq!(file_bytes, written.file_bytes);
}

#[test]
fn multiples_that_are_wanted_are_made_where_there_are_none() {
    let case = Case::new();
    let best = Isa::best();
    let params = case.params.mapped();
    let is_absent = |isa| params.multiples(&case.circuit, isa, &pool()).is_absent();
    assert!(!is_absent(Isa::SCALAR), "there is no form for it");
    assert!(!case.renew_or_make(Isa::SCALAR.into(), true).unwrap());
    assert!(!case.path().exists());
    if cuzk_kernels::testing::ifma().is_none() {
        return;
    }
    assert!(is_absent(best));
    let stop = stop();
    let stopping = Context {
        checkpoint: &stop,
        ..best.into()
    };
    let stopped = case.renew_or_make(stopping, true);
    assert!(matches!(stopped, Err(ParamsError::Stopped)));
    assert!(is_absent(best), "to be tried again");
    assert!(case.renew_or_make(best.into(), true).unwrap());
    assert_eq!(case.shared(best), (true, false));
    assert!(!case.renew_or_make(best.into(), true).unwrap());
}

#[test]
fn what_is_in_use_stays_so_when_a_worse_file_comes() {
    let case = Case::new();
    if cuzk_kernels::testing::ifma().is_none() {
        return;
    }
    let best = Isa::best();
    case.write(40 << 20).unwrap();
    assert_eq!(case.shared(best), (true, false));
    let new = case.path().with_extension("new");
    fs::write(&new, "of another version").unwrap();
    fs::rename(&new, case.path()).unwrap();
    assert_eq!(case.shared(best), (true, true));
    assert!(!case.renew(best.into()).unwrap());
    assert_eq!(case.shared(best), (true, false));
    fs::remove_file(case.path()).unwrap();
    assert_eq!(case.shared(best), (true, false));
}

#[test]
fn what_cannot_be_made_is_not_tried_again() {
    let case = Case::new();
    if cuzk_kernels::testing::ifma().is_none() {
        return;
    }
    let params = case.params.mapped().path();
    let mut bytes = fs::read(params).unwrap();
    // The last of B in G2 is no point then.
    *bytes.last_mut().unwrap() ^= 1;
    fs::remove_file(params).unwrap();
    fs::write(params, bytes).unwrap();
    let files = cuzk_testing::files(ProofKind::WindowPost);
    let reopened = ParamCache::new(case.folder.path())
        .load(&files, &case.circuit.query_lengths())
        .unwrap();
    let case = Case {
        params: reopened,
        ..case
    };
    let best = Isa::best();
    fs::write(case.path(), "stale").unwrap();
    assert_eq!(case.shared(best), (false, true));
    let failed = case.renew(best.into());
    assert!(matches!(failed, Err(ParamsError::Points { .. })));
    assert_eq!(case.shared(best), (false, false));
    assert_eq!(fs::read(case.path()).unwrap(), b"stale");
}
