//! The time that Python adds to a job. A process with the Python package and one with the Rust API
//! prove the same WindowPoSt of 2 KiB in turns. A sample is the time from the bytes of the request
//! to those of the proof.
//!
//! `cargo bench --workspace --bench python` measures; without `--bench` each way runs once.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use cuzk_core::config::Host;
use cuzk_core::{Config, Engine, JobOptions};
use cuzk_filecoin::ProofKind;
use cuzk_testing::pairs::{compare_proofs, timed};
use cuzk_testing::python;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const KIND: ProofKind = ProofKind::WindowPost;

fn through_rust(engine: &Engine, request: &[u8], id: Option<&str>) -> Result<()> {
    let options = JobOptions {
        id: id.map(str::to_owned),
        ..JobOptions::default()
    };
    let proof = engine.submit_bytes(request, options)?.wait()?;
    if proof.as_bytes().len() != 192 {
        return Err("a proof has another length than 192 bytes".into());
    }
    Ok(())
}

/// A process of Python that proves when it is asked to.
struct Python {
    process: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Python {
    fn start(folder: &Path, config: &str) -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut process = python::with_package(root, folder)
            .arg(root.join("benches/calls.py"))
            .env("CUZK_BENCH_CONFIG", config)
            .env("CUZK_BENCH_REQUEST", request_path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let asks = process.stdin.take().ok_or("no input")?;
        let answers = BufReader::new(process.stdout.take().ok_or("no output")?);
        let mut python = Self {
            process,
            asks,
            answers,
        };
        let first = python.answer()?;
        if first == "ready" {
            Ok(python)
        } else {
            Err(format!("Python answered {first:?} before its engine was ready").into())
        }
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// Makes so many calls, and returns the seconds that they took.
    fn prove(&mut self, calls: u32, id: Option<&str>) -> Result<f64> {
        writeln!(self.asks, "{calls} {}", id.unwrap_or_default())?;
        self.asks.flush()?;
        Ok(self.answer()?.parse()?)
    }

    /// Ends the process, which ends with its input.
    fn end(self) -> Result<()> {
        let Self {
            mut process, asks, ..
        } = self;
        drop(asks);
        let status = process.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("Python ended with {status}").into())
        }
    }
}

fn request_path() -> std::path::PathBuf {
    cuzk_testing::data(&format!("{KIND}.json"))
}

fn compare(engine: &Engine, python: &mut Python) -> Result<()> {
    let request = std::fs::read(request_path())?;
    let mut by_rust = |calls, id: Option<&str>| timed(calls, || through_rust(engine, &request, id));
    let mut by_python = |calls, id: Option<&str>| python.prove(calls, id);
    compare_proofs([("Rust", &mut by_rust), ("Python", &mut by_python)])
}

fn main() -> Result<()> {
    if !python::has_python() {
        cuzk_testing::skipped("Python 3.9", "the bench of Python");
        return Ok(());
    }
    let cache = cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"));
    let _in_the_cache = cuzk_testing::circuit_with_params(KIND, &cache);
    let toml = format!("[srs]\nparam_cache = {cache:?}\nmultiples = []\n");
    let engine = Engine::start(Config::parse(&toml, "the bench", &Host::detect())?)?;
    let folder = tempfile::tempdir()?;
    let mut python = Python::start(folder.path(), &toml)?;
    let compared = compare(&engine, &mut python);
    python.end()?;
    compared
}
