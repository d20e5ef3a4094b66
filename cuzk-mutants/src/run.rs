//! A run: the chosen mutants of each package are built, and tried.
//!
//! A run goes on where the one before was cut off, if no source has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::choice::{Choice, changed_lines, is_changed, sample};
use crate::packages::Package;
use crate::process::output;
use crate::report::{LIST, Report, listed, stale};
use crate::schema::{Mutant, Sources, build};
use crate::suite::{Bench, Test};
use crate::target::Made;
use crate::tree;
use crate::trial::{Verdict, attempt};

/// Where a run takes place, and its limits.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder of the workspace.
    pub top: PathBuf,
    /// The number of mutants that are tried at a time.
    pub jobs: usize,
    /// A test that is slower without a mutant is not used.
    pub slow: Duration,
    /// No mutant is tried after this moment.
    pub until: Option<Instant>,
}

/// A build with mutants, and what its tests reach.
#[derive(Serialize, Deserialize)]
struct Built {
    mutants: Vec<Mutant>,
    tests: Vec<Test>,
}

/// Tries the mutants of a choice.
///
/// # Errors
/// A package is unknown, a build fails without its mutants, or a program cannot be run.
pub fn run(settings: &Settings, choice: &Choice) -> Result<Report> {
    let top = &settings.top;
    let mut chosen = BTreeMap::new();
    for (package, files) in choice.packages(top)? {
        let mutants = chosen_of(settings, choice, &package, files.as_ref())?;
        if !mutants.is_empty() {
            chosen.insert(package, mutants);
        }
    }
    if let Some(count) = choice.sample {
        // The lines that changed are other ones after each commit, and so are the mutants.
        let seed = match choice.changed {
            Some(_) => output(top, "git", &["rev-parse", "HEAD"])?,
            None => String::new(),
        };
        if choice.changed.is_some() {
            // Each package has a build of its own, and the time of a run is limited.
            let one = sample(chosen.keys().map(String::as_str), 1, &seed);
            chosen.retain(|package, _| one.contains(package));
        }
        let all = chosen.values().flatten().map(String::as_str);
        let taken = sample(all, count, &seed);
        for keys in chosen.values_mut() {
            keys.retain(|key| taken.contains(key));
        }
    }
    let mut report = Report::default();
    for (package, keys) in chosen.into_iter().filter(|(_, keys)| !keys.is_empty()) {
        report.add(try_package(
            settings,
            &Package::read(top, &package, choice.every_test)?,
            &keys,
        )?);
    }
    Ok(report)
}

fn folder_of(settings: &Settings, package: &str) -> PathBuf {
    settings.top.join("target/mutants").join(package)
}

/// Returns the keys of a package's mutants that are asked for.
fn chosen_of(
    settings: &Settings,
    choice: &Choice,
    package: &str,
    files: Option<&BTreeSet<String>>,
) -> Result<BTreeSet<String>> {
    let lines = match &choice.changed {
        Some(since) => Some(changed_lines(&settings.top, since, package)?),
        None => None,
    };
    if lines.as_ref().is_some_and(BTreeMap::is_empty) {
        return Ok(BTreeSet::new());
    }
    let path = folder_of(settings, package).join("survivors");
    let survivors = if choice.survivors {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Some(text.lines().map(str::to_owned).collect::<BTreeSet<_>>())
    } else {
        None
    };
    let is_chosen = |mutant: &Mutant| {
        files.is_none_or(|files| files.contains(mutant.file()))
            && lines.as_ref().is_none_or(|lines| is_changed(lines, mutant))
            && survivors
                .as_ref()
                .is_none_or(|survivors| survivors.contains(&mutant.key))
    };
    let sources = Sources::read(&settings.top, package, is_chosen)?;
    Ok(sources
        .mutants
        .into_iter()
        .map(|mutant| mutant.key)
        .collect())
}

fn try_package(settings: &Settings, package: &Package, keys: &BTreeSet<String>) -> Result<Report> {
    let top = &settings.top;
    let folder = folder_of(settings, &package.name);
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut bench = Bench {
        package: folder.join("tree").join(&package.name),
        folder: folder.clone(),
        jobs: settings.jobs,
        slow: settings.slow,
    };
    let hash = hash(top, package, keys)?;
    let begun = Instant::now();
    let built = prepare(top, package, keys, &bench, hash)?;
    let count = built
        .mutants
        .iter()
        .filter(|mutant| mutant.compiles)
        .count();
    println!(
        "{}: {count} of {} mutants compile, {} tests reach {} of them; {} s",
        package.name,
        built.mutants.len(),
        built.tests.len(),
        built
            .tests
            .iter()
            .flat_map(|test| &test.reached)
            .collect::<BTreeSet<_>>()
            .len(),
        begun.elapsed().as_secs()
    );
    // Mutants that share files are tried one at a time.
    if package.keeps_files && Made::new(&folder).is_some() {
        bench.jobs = 1;
    }
    let verdicts = try_all(
        settings,
        &bench,
        &built,
        &folder.join(format!("tried-{hash:016x}")),
    )?;
    let list = fs::read_to_string(top.join(LIST)).with_context(|| LIST.to_owned())?;
    let all = Sources::read(top, &package.name, |_| true)?;
    for key in stale(&list, &all.mutants) {
        eprintln!("{LIST} has a mutant that is none any more: {key}");
    }
    let of = |mutant: &Mutant| verdicts.get(&mutant.number);
    let open = open(&built, &verdicts, &list);
    fs::write(folder.join("survivors"), open).context("the survivors")?;
    println!("{}: tried, {} s", package.name, begun.elapsed().as_secs());
    Ok(Report::new(
        built.mutants.iter().map(|mutant| (mutant, of(mutant))),
        &list,
    ))
}

/// Returns the mutants that the next run of the survivors tries, one a line. Those that were not tried
/// in time are among them. Nothing is left to do about listed ones.
fn open(built: &Built, verdicts: &BTreeMap<u32, Verdict>, list: &str) -> String {
    let listed: BTreeSet<_> = listed(list).collect();
    let is_killed = |mutant: &Mutant| {
        let verdict = verdicts.get(&mutant.number);
        verdict.is_some_and(Verdict::is_killed)
    };
    let open = built
        .mutants
        .iter()
        .filter(|mutant| mutant.compiles && !is_killed(mutant) && !listed.contains(&*mutant.key));
    open.map(|mutant| mutant.key.clone() + "\n").collect()
}

/// Returns a number for the sources of a package, of what it needs, and of the chosen mutants.
fn hash(top: &Path, package: &Package, keys: &BTreeSet<String>) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    (keys, &package.tests).hash(&mut hasher);
    let own = std::iter::once(package.name.as_str());
    for name in own
        .chain(package.needed.iter().map(String::as_str))
        .chain(["Cargo.lock", "data"])
    {
        for file in tree::files(top, name)? {
            let bytes = fs::read(top.join(&file)).with_context(|| file.display().to_string())?;
            (&file, bytes).hash(&mut hasher);
        }
    }
    Ok(hasher.finish())
}

/// Builds the tests, and records what they reach, unless that has been done.
fn prepare(
    top: &Path,
    package: &Package,
    keys: &BTreeSet<String>,
    bench: &Bench,
    hash: u64,
) -> Result<Built> {
    let path = bench.folder.join(format!("built-{hash:016x}"));
    if let Ok(text) = fs::read(&path)
        && let Ok(built) = serde_json::from_slice(&text)
    {
        return Ok(built);
    }
    let old = fs::read_dir(&bench.folder).with_context(|| bench.folder.display().to_string())?;
    for entry in old.flatten() {
        if entry.file_name().to_string_lossy().starts_with("built-") {
            fs::remove_file(entry.path()).with_context(|| entry.path().display().to_string())?;
        }
    }
    let mut sources = Sources::read(top, &package.name, |mutant| keys.contains(&mutant.key))?;
    let programs = build(top, &bench.folder, package, &mut sources)?;
    let tests = bench.record(&programs)?;
    Made::new(&bench.folder).keep()?;
    let built = Built {
        mutants: sources.mutants,
        tests,
    };
    fs::write(&path, serde_json::to_vec(&built)?).with_context(|| path.display().to_string())?;
    Ok(built)
}

fn try_all(
    settings: &Settings,
    bench: &Bench,
    built: &Built,
    path: &Path,
) -> Result<BTreeMap<u32, Verdict>> {
    let mut verdicts = BTreeMap::new();
    for line in fs::read_to_string(path).unwrap_or_default().lines() {
        let parsed = line
            .split_once(' ')
            .and_then(|(number, rest)| Some((number.parse().ok()?, Verdict::parse(rest)?)));
        verdicts.extend(parsed);
    }
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    let file = Mutex::new(file.with_context(|| path.display().to_string())?);
    let open: Vec<_> = built
        .mutants
        .iter()
        .filter(|mutant| mutant.compiles && !verdicts.contains_key(&mutant.number))
        .collect();
    let verdicts = Mutex::new(verdicts);
    let made = Made::new(&bench.folder);
    // The last test that killed a mutant of a function.
    let killers = Mutex::new(BTreeMap::new());
    bench.each(&open, |mutant, job| {
        if settings.until.is_some_and(|until| Instant::now() > until) {
            return Ok(());
        }
        let place = (mutant.file(), mutant.function);
        let first = killers
            .lock()
            .ok()
            .and_then(|killers| killers.get(&place).cloned());
        let verdict = attempt(bench, &built.tests, mutant, first.as_deref(), job)?;
        if verdict.is_killed() && bench.jobs == 1 {
            made.restore()?;
        }
        if let Ok(mut file) = file.lock() {
            writeln!(file, "{} {}", mutant.number, verdict.line()).context("the verdicts")?;
        }
        if let (Verdict::Killed(by), Ok(mut killers)) = (&verdict, killers.lock()) {
            killers.insert(place, by.clone());
        }
        if let Ok(mut verdicts) = verdicts.lock() {
            verdicts.insert(mutant.number, verdict);
        }
        Ok(())
    })?;
    Ok(verdicts.into_inner().unwrap_or_default())
}
