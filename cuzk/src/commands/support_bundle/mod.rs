//! `cuzk support-bundle`: what a person who helps must see, in one file.
//!
//! The invariants:
//!
//! * The content is listed before it is written.
//! * No file holds a secret that `redact` knows. A miner id has the same made-up name in all.
//! * A file that cannot be had is named, and the rest is written.

mod http;
mod redact;
mod tar;

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use cuzk_core::Config;
use cuzk_core::config::Address;
use indicatif::HumanBytes;
use serde::Serialize;

use self::redact::Redactor;
use super::doctor::{self, Doctor};
use super::version::VersionReport;
use crate::failure::Failure;
use crate::output::{self, shown};
use crate::output_path::OutputPath;

/// The lines of a log that are kept.
const LOG_LINES: usize = 2000;

/// The most of a log that is read: lines of 8 KiB.
const LOG_MAX_BYTES: u64 = (LOG_LINES as u64) << 13;

#[derive(Debug, Args)]
pub(crate) struct SupportBundle {
    /// The file for the bundle, a tar archive. By default cuzk-support-SECONDS.tar in the
    /// current folder.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The HTTP address of the daemon. By default `[server] http` of the configuration.
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<Address>,
    /// The log of the daemon. By default the last lines of the service cuzk, as journalctl
    /// prints them.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Print the list of the content, and write nothing.
    #[arg(long)]
    list: bool,
}

/// A file of the bundle, or the reason for which it is missing.
struct Entry {
    name: &'static str,
    what: &'static str,
    content: Result<String, String>,
}

#[derive(Debug, Serialize)]
struct Line {
    name: &'static str,
    what: &'static str,
    bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
}

#[derive(Debug, Serialize)]
struct BundleReport {
    /// The file; none if nothing was to be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    out: Option<String>,
    content: Vec<Line>,
}

/// Collects and writes the bundle. `file` is the configuration that `--config` names.
pub(crate) fn run(args: &SupportBundle, file: Option<&Path>, json: bool) -> Result<(), Failure> {
    let out = match (&args.out, args.list) {
        (_, true) => None,
        (Some(out), false) => Some(OutputPath::new(out)?),
        (None, false) => Some(OutputPath::new(&default_path())?),
    };
    let mut entries = collect(args, file);
    let mut redactor = Redactor::default();
    for entry in &mut entries {
        if let Ok(content) = &mut entry.content {
            *content = redactor.redact(content);
        }
    }
    let report = BundleReport {
        out: out.as_ref().map(|out| shown(out.path())),
        content: entries.iter().map(Entry::line).collect(),
    };
    let is_stdout = out.as_ref().is_some_and(OutputPath::is_stdout);
    output::print_beside(is_stdout, json, &report, text)?;
    let Some(out) = out else { return Ok(()) };
    let files = entries.iter().filter_map(|entry| {
        let content = entry.content.as_ref().ok()?;
        Some((entry.name, content.as_bytes()))
    });
    out.write(&tar::archive("cuzk-support", files, now_s()))
}

fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn default_path() -> PathBuf {
    format!("cuzk-support-{}.tar", now_s()).into()
}

fn collect(args: &SupportBundle, file: Option<&Path>) -> Vec<Entry> {
    let loaded = match file {
        Some(file) => Config::load(file).map_err(|error| error.to_string()),
        None => Ok(Config::default()),
    };
    let http = match (&args.http, &loaded) {
        (Some(http), _) => Some(http.clone()),
        (None, Ok(config)) => config.server.http.clone(),
        (None, Err(_)) => None,
    };
    let of_daemon = |path| match &http {
        Some(address) => http::get(address, path),
        None => Err("the daemon serves no HTTP".to_owned()),
    };
    let examined = doctor::examine(&of_all_kinds(), file);
    let as_json = |json: Result<String, serde_json::Error>| json.map_err(|error| error.to_string());
    let entry = |name, what, content| Entry {
        name,
        what,
        content,
    };
    let version = as_json(serde_json::to_string_pretty(&VersionReport::new()));
    let doctor = as_json(serde_json::to_string_pretty(&examined));
    vec![
        entry(
            "version.json",
            "the version, the build, the machine",
            version,
        ),
        entry(
            "configuration.toml",
            "the configuration, with all defaults",
            loaded.map(|config| config.to_toml()),
        ),
        entry("doctor.json", "the findings of cuzk doctor", doctor),
        entry("status.json", "the daemon's state", of_daemon("/status")),
        entry("metrics.txt", "the daemon's metrics", of_daemon("/metrics")),
        entry(
            "timeline.json",
            "the last stages, for ui.perfetto.dev",
            of_daemon("/timeline.json"),
        ),
        entry("log.txt", "the last lines of the log", log(args)),
    ]
}

fn of_all_kinds() -> Doctor {
    Doctor {
        kind: Vec::new(),
        sector_size: None,
        curio: None,
    }
}

/// Returns the last lines of the daemon's log.
fn log(args: &SupportBundle) -> Result<String, String> {
    let text = match &args.log {
        Some(path) => end_of(path).map_err(|error| format!("{}: {error}", shown(path)))?,
        None => of_service()?,
    };
    let lines: Vec<_> = text.lines().collect();
    let first = lines.len().saturating_sub(LOG_LINES);
    match lines.is_empty() {
        true => Err("the log is empty; --log names a file".to_owned()),
        false => Ok(lines[first..].join("\n")),
    }
}

/// Returns the last part of a file, from the start of a line, or the first part of a pipe.
fn end_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let bytes = metadata.len().saturating_sub(LOG_MAX_BYTES);
    let is_cut = metadata.is_file() && bytes > 0;
    if is_cut {
        file.seek(SeekFrom::Start(bytes))?;
    }
    let mut end = Vec::new();
    file.take(LOG_MAX_BYTES).read_to_end(&mut end)?;
    let end = String::from_utf8_lossy(&end).into_owned();
    match end.split_once('\n') {
        Some((_, lines)) if is_cut => Ok(lines.to_owned()),
        _ => Ok(end),
    }
}

fn of_service() -> Result<String, String> {
    let lines = LOG_LINES.to_string();
    let mut journalctl = Command::new("journalctl");
    journalctl.args(["--unit", "cuzk", "--no-pager", "--quiet", "--lines", &lines]);
    let output = journalctl.output();
    let output = output.map_err(|error| format!("journalctl: {error}; --log names a file"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let problem = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "journalctl: {}; --log names a file",
        problem.trim()
    ))
}

impl Entry {
    fn line(&self) -> Line {
        let content = self.content.as_ref();
        Line {
            name: self.name,
            what: self.what,
            bytes: content.ok().map(String::len),
            missing: content.err().cloned(),
        }
    }
}

fn text(report: &BundleReport) -> String {
    let lines = report.content.iter().map(|line| {
        let Line {
            name,
            what,
            bytes,
            missing,
        } = line;
        match missing {
            Some(reason) => format!("{name:<20} missing: {reason}"),
            None => {
                let bytes = HumanBytes(bytes.unwrap_or_default() as u64).to_string();
                format!("{name:<20} {bytes:>10}  {what}")
            }
        }
    });
    let last = match &report.out {
        Some(out) => format!("in {out}; tokens, keys and miner ids are replaced in all of it"),
        None => "nothing was written".to_owned(),
    };
    lines.chain([last]).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_log_begins_with_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let line = |number: u64| format!("{number:07} the daemon proves\n");
        let length = line(0).len() as u64;
        let count = LOG_MAX_BYTES / length + 10;
        let text: String = (0..count).map(line).collect();
        std::fs::write(&path, &text).unwrap();
        let end = end_of(&path).unwrap();
        assert!(end.len() as u64 > LOG_MAX_BYTES - length);
        assert!(text.ends_with(&end) && (end.len() as u64).is_multiple_of(length));
        std::fs::write(&path, "short\n").unwrap();
        assert_eq!(end_of(&path).unwrap(), "short\n");
        assert!(end_of(&folder.path().join("no")).is_err());
    }
}
