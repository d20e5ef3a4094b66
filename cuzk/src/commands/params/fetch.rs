//! `cuzk params fetch`

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use cuzk_core::circuits;
use cuzk_core::error::ErrorCode;
use cuzk_fetch::{
    Digests, Event, FetchError, FileReport, ListedFile, Observer, Options, Outcome, Progress,
    Report, Source,
};
use cuzk_filecoin::{CircuitId, PARAMETERS_JSON, ProofKind, SRS_JSON, SectorSize, srs_file_name};
use indicatif::{HumanBytes, HumanDuration, ProgressBar};
use serde::Serialize;

use super::check_cache;
use crate::commands::Context;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{output, progress};

/// The time between two lines of progress where there is no terminal.
const LINE_TIME: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub(crate) struct ParamsFetch {
    /// porep, winning-post, window-post or snap-deals; several with commas, or by repeating
    /// the option.
    #[arg(
        long,
        required_unless_present = "srs",
        requires = "sector_size",
        value_delimiter = ','
    )]
    pub(crate) kind: Vec<ProofKind>,
    /// 2KiB, 8MiB, 512MiB, 32GiB or 64GiB.
    #[arg(long, required_unless_present = "srs")]
    pub(crate) sector_size: Option<SectorSize>,
    /// Fetch the inner-product SRS too, which `cuzk aggregate` needs.
    #[arg(long)]
    pub(crate) srs: bool,
    /// A source: a folder, http(s)://HOST/PATH, ipfs://GATEWAY or cuzk://HOST:PORT. All
    /// sources are used at the same time. Default: `[srs] sources`, or without them the
    /// gateway in the variable IPFS_GATEWAY.
    #[arg(long, value_name = "SOURCE")]
    pub(crate) from: Vec<Source>,
    /// The ranges of files that are fetched at once.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: u16,
    /// A list of digests in the form of parameters.json, in place of the networks' list.
    #[arg(long, value_name = "FILE")]
    pub(crate) digests: Option<PathBuf>,
    /// The gateway that is used if no source is named.
    #[arg(long, value_name = "URL", env = "IPFS_GATEWAY", hide = true)]
    pub(crate) ipfs_gateway: Option<String>,
}

#[derive(Debug, Serialize)]
struct FileLine {
    name: String,
    bytes: Option<u64>,
    /// True if it came now, false if it was there.
    fetched: bool,
}

#[derive(Debug, Serialize)]
struct SourceLine {
    source: String,
    fetched_bytes: u64,
    corrupt: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct FetchReport {
    folder: String,
    files: Vec<FileLine>,
    sources: Vec<SourceLine>,
    fetched_bytes: u64,
    fetch_s: f64,
}

pub(super) fn run(context: &Context, args: &ParamsFetch) -> Result<(), Failure> {
    let started = Instant::now();
    let files = wanted(args)?;
    let folder = context.config.srs.param_cache.clone();
    check_cache(&folder)?;
    let mut options = Options::new(folder, sources(context, args)?);
    options.jobs = args.jobs.into();
    let interrupt = Interrupt::watch()?;
    let stop = AtomicBool::new(false);
    let mut shown = Shown::new(&interrupt, &stop);
    let fetched = cuzk_fetch::fetch(&files, options, &stop, &mut shown);
    shown.bar.finish_and_clear();
    let report = fetched.map_err(|error| failure(&error))?;
    if let Some(signal) = interrupt.signal().filter(|_| !report.is_complete()) {
        let left = "the bytes that came are kept; the same command goes on";
        return Err(Failure::stopped(signal, left));
    }
    check(&report)?;
    let report = printed(context, report, started);
    output::print(context.json, &report, text)
}

/// The list of digests that a command uses.
pub(super) enum Lists {
    /// That of a file.
    File(Digests),
    /// Those of the networks: of parameters, and of the inner-product SRS.
    Networks([Digests; 2]),
}

impl Lists {
    /// Returns the entry of a file.
    pub(super) fn get(&self, name: &str) -> Option<&ListedFile> {
        match self {
            Self::File(digests) => digests.get(name),
            Self::Networks([parameters, srs]) => parameters.get(name).or_else(|| srs.get(name)),
        }
    }
}

/// Returns the list of digests that a command uses.
pub(super) fn digests(file: Option<&PathBuf>) -> Result<Lists, Failure> {
    let parse = |text| {
        Digests::parse(text)
            .map_err(|problem| Failure::failed(format!("the list of the networks: {problem}")))
    };
    Ok(match file {
        Some(path) => Lists::File(Digests::read(path).map_err(|error| failure(&error))?),
        None => Lists::Networks([parse(PARAMETERS_JSON)?, parse(SRS_JSON)?]),
    })
}

/// Returns the parameters and the keys of the kinds that are asked for.
fn wanted(args: &ParamsFetch) -> Result<Vec<ListedFile>, Failure> {
    let digests = digests(args.digests.as_ref())?;
    let mut names = Vec::new();
    let sized = args.sector_size.into_iter();
    let ids = sized.flat_map(|sector_size| {
        let kinds = args.kind.iter();
        kinds.map(move |&kind| CircuitId { kind, sector_size })
    });
    for id in ids {
        let files = circuits::parameter_files(id)?;
        // The key is small, and a proof cannot do without it.
        names.extend([files.vk, files.params]);
    }
    names.extend(args.srs.then(srs_file_name));
    let listed = names.into_iter().map(|name| {
        digests.get(&name).cloned().ok_or_else(|| {
            Failure::input(format!(
                "{name}: not in the list of digests, so it cannot be checked; give a list \
                 that has it with --digests"
            ))
        })
    });
    listed.collect()
}

fn sources(context: &Context, args: &ParamsFetch) -> Result<Vec<Source>, Failure> {
    let configured = &context.config.srs.sources;
    let named = [&args.from, configured];
    if let Some(sources) = named.into_iter().find(|sources| !sources.is_empty()) {
        return Ok(sources.clone());
    }
    match args.ipfs_gateway.as_deref() {
        Some(gateway) if !gateway.is_empty() => Source::gateway(gateway)
            .map(|gateway| vec![gateway])
            .map_err(|problem| Failure::input(format!("IPFS_GATEWAY: {problem}"))),
        _ => Err(Failure::input(
            "no source of parameters; name one with --from or in [srs] sources of the \
             configuration, or an IPFS gateway in the variable IPFS_GATEWAY",
        )),
    }
}

fn failure(error: &FetchError) -> Failure {
    match error {
        FetchError::NoSpace { .. } => Failure::new(ErrorCode::Output, error.to_string()),
        FetchError::Thread(_) => Failure::new(ErrorCode::Threads, error.to_string()),
        FetchError::File { source, .. } => {
            Failure::new(ErrorCode::of_file(source), error.to_string())
        }
        _ => Failure::input(error.to_string()),
    }
}

/// Checks that every file came.
fn check(report: &Report) -> Result<(), Failure> {
    // Files with one problem are told together.
    let mut problems: Vec<(&str, Vec<&str>)> = Vec::new();
    for file in &report.files {
        let problem = match &file.outcome {
            Outcome::Failed(problem) | Outcome::Disk(problem) => problem.as_str(),
            Outcome::Stopped => "stopped",
            _ => continue,
        };
        match problems.iter_mut().find(|(known, _)| *known == problem) {
            Some((_, names)) => names.push(&file.name),
            None => problems.push((problem, vec![file.name.as_str()])),
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let is_of_disk = |file: &FileReport| matches!(file.outcome, Outcome::Disk(_));
    let (code, advice) = match report.files.iter().any(is_of_disk) {
        true => (
            ErrorCode::Output,
            "make room, and give the same command again",
        ),
        false => (ErrorCode::Fetch, "name another source with --from"),
    };
    let problems = problems.into_iter();
    let problems = problems.map(|(problem, names)| format!("{}: {problem}", names.join(", ")));
    let problems = problems.collect::<Vec<_>>().join("; ");
    let message = format!("{problems}; {advice}; the bytes that came are kept");
    Err(Failure::new(code, message))
}

fn printed(context: &Context, report: Report, started: Instant) -> FetchReport {
    let files = report.files.into_iter().map(|file| FileLine {
        name: file.name,
        bytes: file.length_bytes,
        fetched: file.outcome == Outcome::Fetched,
    });
    let fetched_bytes = report
        .sources
        .iter()
        .map(|source| source.fetched_bytes)
        .sum();
    let sources = report.sources.into_iter().map(|source| SourceLine {
        source: source.source,
        fetched_bytes: source.fetched_bytes,
        corrupt: source.is_corrupt,
        problem: source.out,
    });
    FetchReport {
        folder: output::shown(&context.config.srs.param_cache),
        files: files.collect(),
        sources: sources.collect(),
        fetched_bytes,
        fetch_s: started.elapsed().as_secs_f64(),
    }
}

fn text(report: &FetchReport) -> String {
    let mut text = String::new();
    for file in &report.files {
        let how = if file.fetched {
            "fetched"
        } else {
            "already there"
        };
        let bytes = HumanBytes(file.bytes.unwrap_or(0));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}: {how}, {bytes}, digest right", file.name);
    }
    for source in report.sources.iter().filter(|source| source.corrupt) {
        let _ = writeln!(text, "{}: gave wrong bytes; do not use it", source.source);
    }
    let bytes = HumanBytes(report.fetched_bytes);
    let _ = write!(
        text,
        "{bytes} in {:.1} s into {}",
        report.fetch_s, report.folder
    );
    text
}

/// Shows a fetch: a bar on a terminal, lines elsewhere.
struct Shown<'a> {
    interrupt: &'a Interrupt,
    stop: &'a AtomicBool,
    bar: ProgressBar,
    /// The problems that were told. Each is told once.
    told: BTreeSet<String>,
    /// The time and the bytes of the last line.
    line: (Instant, Option<u64>),
}

impl<'a> Shown<'a> {
    fn new(interrupt: &'a Interrupt, stop: &'a AtomicBool) -> Self {
        Self {
            interrupt,
            stop,
            bar: progress::bytes_bar("fetching parameters"),
            told: BTreeSet::new(),
            line: (Instant::now(), None),
        }
    }

    /// Writes a line of progress if the last one is long ago.
    fn write_line(&mut self, progress: &Progress) {
        let (at, Some(before_bytes)) = self.line else {
            return;
        };
        if at.elapsed() < LINE_TIME {
            return;
        }
        let bytes_s =
            progress.present_bytes.saturating_sub(before_bytes) / at.elapsed().as_secs().max(1);
        let left_bytes = progress.total_bytes.saturating_sub(progress.present_bytes);
        let left = match left_bytes.checked_div(bytes_s) {
            Some(seconds) => format!("{} left", HumanDuration(Duration::from_secs(seconds))),
            None => "nothing came for a while".to_owned(),
        };
        tracing::info!(
            "fetching parameters: {} of {}, {}/s, {left}",
            HumanBytes(progress.present_bytes),
            HumanBytes(progress.total_bytes),
            HumanBytes(bytes_s),
        );
        self.line = (Instant::now(), Some(progress.present_bytes));
    }
}

impl Observer for Shown<'_> {
    fn event(&mut self, event: &Event) {
        let text = event.to_string();
        if !self.told.insert(text.clone()) {
            return;
        }
        self.bar.suspend(|| match event {
            Event::Comparing { .. }
            | Event::AlreadyThere { .. }
            | Event::Waiting { .. }
            | Event::Begun { .. }
            | Event::Done { .. }
            | Event::Retrying { .. } => tracing::info!("{text}"),
            _ => tracing::warn!("{text}"),
        });
    }

    fn progress(&mut self, progress: &Progress) {
        if self.interrupt.signal().is_some() {
            self.stop.store(true, Ordering::Relaxed);
        }
        if progress.total_bytes == 0 {
            return;
        }
        self.bar.set_length(progress.total_bytes);
        self.bar.set_position(progress.present_bytes);
        if self.line.1.is_none() {
            // The bytes of an earlier run say nothing of the rate.
            self.bar.reset_eta();
            self.line = (Instant::now(), Some(progress.present_bytes));
        }
        if self.bar.is_hidden() {
            self.write_line(progress);
        }
    }
}
