//! The tests of a build with mutants, with the time that each takes and the mutants that it reaches.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::process::{Ended, output, run};
use crate::runtime::{CHOSEN, REACHED};

/// A test.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Test {
    /// The program that it is in.
    pub program: PathBuf,
    /// Its name in the program.
    pub name: String,
    /// How long it took.
    pub took: Duration,
    /// The mutants that it reaches.
    pub reached: BTreeSet<u32>,
}

/// Where and how tests run.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The folder of the mutated package.
    pub package: PathBuf,
    /// A folder for what tests print.
    pub folder: PathBuf,
    /// The number of tests at a time.
    pub jobs: usize,
    /// A test that is slower without a mutant is not used.
    pub slow: Duration,
}

impl Bench {
    /// Returns a command that runs tests of a program.
    #[must_use]
    pub fn command(&self, program: &Path, names: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(["--exact", "--test-threads", "4"]).args(names);
        command
            .current_dir(&self.package)
            .env("CARGO_MANIFEST_DIR", &self.package);
        // A seed that failed for a mutant is none of the good source.
        command
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
            .env("RUST_BACKTRACE", "0");
        command.env_remove(CHOSEN).env_remove(REACHED);
        command
    }

    /// Does something with each of a list, several at a time. Each has a number of its own among
    /// those that run, counted from 0.
    ///
    /// # Errors
    /// One of them fails, or a thread cannot be started.
    pub fn each<T: Sync>(
        &self,
        list: &[T],
        work: impl Fn(&T, usize) -> Result<()> + Sync,
    ) -> Result<()> {
        let next = Mutex::new(list.iter());
        let take = || next.lock().ok()?.next();
        let work = |job: usize| -> Result<()> {
            while let Some(one) = take() {
                work(one, job)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for job in 0..self.jobs.max(1) {
                let thread = std::thread::Builder::new();
                threads.push(
                    thread
                        .spawn_scoped(scope, move || work(job))
                        .context("a thread")?,
                );
            }
            threads
                .into_iter()
                .try_for_each(|thread| match thread.join() {
                    Ok(result) => result,
                    Err(_) => bail!("a thread panicked"),
                })
        })
    }

    /// Runs each test of the programs once, without a mutant. A test that fails then is not used, nor
    /// one that is too slow.
    ///
    /// # Errors
    /// A program cannot be run, or none of its tests passes.
    pub fn record(&self, programs: &[PathBuf]) -> Result<Vec<Test>> {
        let mut open = Vec::new();
        for program in programs {
            let ignored: BTreeSet<_> = self.list(program, &["--ignored"])?.into_iter().collect();
            let names = self.list(program, &[])?.into_iter();
            open.extend(
                names
                    .filter(|name| !ignored.contains(name))
                    .map(|name| (program.clone(), name)),
            );
        }
        let tests = Mutex::new(Vec::new());
        self.each(&open, |(program, name), job| {
            let test = self.record_one(program, name, job)?;
            if let (Some(test), Ok(mut tests)) = (test, tests.lock()) {
                tests.push(test);
            }
            Ok(())
        })?;
        let mut tests = tests.into_inner().unwrap_or_default();
        if tests.is_empty() && !open.is_empty() {
            bail!("none of {} tests passes", open.len());
        }
        tests.sort_by(|a, b| a.took.cmp(&b.took).then_with(|| a.name.cmp(&b.name)));
        Ok(tests)
    }

    fn record_one(&self, program: &Path, name: &str, job: usize) -> Result<Option<Test>> {
        let file = self.folder.join(format!("reached-{job}"));
        if file.exists() {
            fs::remove_file(&file).with_context(|| file.display().to_string())?;
        }
        let mut command = self.command(program, &[name]);
        command.env(REACHED, &file);
        let begun = Instant::now();
        let ended = run(
            &mut command,
            self.slow,
            &self.folder.join(format!("recorded-{job}")),
        )?;
        let took = begun.elapsed();
        if ended != Ended::Well {
            println!("not used, since it does not pass without a mutant in time: {name}");
            return Ok(None);
        }
        let text = fs::read_to_string(&file).unwrap_or_default();
        let reached = text.lines().filter_map(|line| line.parse().ok()).collect();
        let (program, name) = (program.to_owned(), name.to_owned());
        Ok(Some(Test {
            program,
            name,
            took,
            reached,
        }))
    }

    fn list(&self, program: &Path, options: &[&str]) -> Result<Vec<String>> {
        let program = program.to_string_lossy();
        let arguments = [&["--list", "--format", "terse"][..], options].concat();
        let text = output(&self.package, &program, &arguments)?;
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }
}
