//! The time that Python adds to a job. Python and the Rust API prove the same WindowPoSt of 2 KiB
//! in turns, each in a process of its own. A sample is the time from the bytes of the request to
//! those of the proof.
//!
//! A proof takes far longer than a call. So each arm also asks for a proved job again by its
//! id: that makes the same calls and proves nothing.
//!
//! `cargo bench --workspace --bench python` measures; without `--bench` each arm runs once.

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use cuzk_core::config::Host;
use cuzk_core::{Config, Engine, JobOptions};
use cuzk_filecoin::ProofKind;
use cuzk_testing::pairs::{Arm, compare, timed};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const KIND: ProofKind = ProofKind::WindowPost;

/// The id of the job that was proved.
const PROVED: &str = "proved";

fn through_rust(engine: &Engine, request: &[u8], id: Option<&str>) -> Result<()> {
    let options = JobOptions {
        id: id.map(str::to_owned),
        ..JobOptions::default()
    };
    let proof = engine.submit_bytes(request, options)?.wait()?;
    match proof.as_bytes().to_vec().len() {
        192 => Ok(()),
        len => Err(format!("a proof of {len} bytes").into()),
    }
}

/// A process with the package and an engine, which ends when its input does.
struct Python {
    process: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Python {
    /// Starts a process that finds the package in `folder`.
    fn start(folder: &Path, request: &Path, toml: &str) -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let package = folder.join("cuzk");
        std::fs::create_dir(&package)?;
        let module = root.join("python/cuzk/__init__.py");
        std::fs::copy(module, package.join("__init__.py"))?;
        // Cargo leaves the library of a bench's crate beside the bench.
        let bench = std::env::current_exe()?;
        let library = bench.with_file_name("lib_cuzk.so");
        std::os::unix::fs::symlink(library, package.join("_cuzk.abi3.so"))?;
        let mut process = Command::new("python3")
            .arg(root.join("benches/calls.py"))
            .env("PYTHONPATH", folder)
            .env("CUZK_BENCH_REQUEST", request)
            .env("CUZK_BENCH_CONFIG", toml)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let answers = process.stdout.take().ok_or("no output")?;
        Ok(Self {
            orders: process.stdin.take(),
            answers: BufReader::new(answers),
            process,
        })
    }

    /// Has so many calls made, and returns the seconds that they took.
    fn timed(&mut self, calls: u32, id: Option<&str>) -> Result<f64> {
        let orders = self.orders.as_mut().ok_or("no input")?;
        writeln!(orders, "{calls} {}", id.unwrap_or_default())?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        Ok(answer.trim().parse()?)
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.process.wait();
    }
}

fn main() -> Result<()> {
    let is_measured = std::env::args().any(|argument| argument == "--bench");
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped, for want of Python: the time that Python adds to a job");
        return Ok(());
    }
    let (rounds, calls) = if is_measured { (40, 200) } else { (1, 1) };
    let cache = cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"));
    let _in_the_cache = cuzk_testing::circuit_with_params(KIND, &cache);
    let toml = format!("[srs]\nparam_cache = {cache:?}\nmultiples = []\n");
    let path = cuzk_testing::data(&format!("{KIND}.json"));
    let request = std::fs::read(&path)?;
    let folder = tempfile::tempdir()?;
    let mut python = Python::start(folder.path(), &path, &toml)?;
    let rust = Engine::start(Config::parse(&toml, "the bench", &Host::detect())?)?;
    // Both have loaded the circuit and its parameters, and have a job that was proved.
    through_rust(&rust, &request, Some(PROVED))?;
    python.timed(1, Some(PROVED))?;
    for (what, id, calls) in [
        ("a proof", None, 1),
        ("a proved job again", Some(PROVED), calls),
    ] {
        let mut by_rust = |calls| timed(calls, || through_rust(&rust, &request, id));
        let mut by_python = |calls| python.timed(calls, id);
        let arms: [(_, Arm<'_>); 2] = [("Rust", &mut by_rust), ("Python", &mut by_python)];
        compare(what, (rounds, calls), arms)?;
    }
    Ok(())
}
