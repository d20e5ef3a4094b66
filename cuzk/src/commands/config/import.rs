//! `cuzk config import FILE`

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use cuzk_core::Config;
use cuzk_core::config::{Host, Imported, import};
use serde::Serialize;

use crate::commands::read;
use crate::failure::Failure;
use crate::output::{self, shown};
use crate::output_path::OutputPath;

/// No configuration is as large.
const FILE_MAX_BYTES: u64 = 1 << 20;

#[derive(Debug, Args)]
pub(crate) struct ConfigImport {
    /// The configuration of the existing daemon.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write our form into FILE instead of printing it.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct ImportReport {
    /// Our form.
    toml: String,
    left_out: Vec<Key>,
    notes: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct Key {
    key: String,
    reason: &'static str,
}

pub(super) fn run(args: &ConfigImport, json: bool) -> Result<(), Failure> {
    let out = args.out.as_deref().map(OutputPath::new).transpose()?;
    let text = String::from_utf8(read(&args.file, FILE_MAX_BYTES)?).map_err(|_| {
        let path = shown(&args.file);
        Failure::input(format!("{path}: not UTF-8; save the file as UTF-8 text"))
    })?;
    let imported = import(&text, &shown(&args.file))?;
    let toml = commented(&imported, &shown(&args.file));
    // Values that the other daemon took and this one does not are errors here, too.
    let origin = format!("carried over from {}", shown(&args.file));
    let checked = Config::parse(&toml, &origin, &Host::detect());
    if let Some(out) = &out {
        out.write(toml.as_bytes())?;
    }
    let report = ImportReport {
        toml,
        left_out: imported
            .left_out
            .into_iter()
            .map(|left| Key {
                key: left.key,
                reason: left.reason,
            })
            .collect(),
        notes: imported.notes,
    };
    let is_stdout = out.as_ref().is_some_and(OutputPath::is_stdout);
    output::print_beside(is_stdout, json, &report, |report| match &args.out {
        Some(out) => format!("{}\n{}", shown(out), summary(report)),
        None => report.toml.trim_end().to_owned(),
    })?;
    checked.map(drop).map_err(Failure::from)
}

/// Returns our form with all that an operator must know as comments.
fn commented(imported: &Imported, origin: &str) -> String {
    let mut text = format!("# Carried over from {origin} by `cuzk config import`.\n");
    if !imported.left_out.is_empty() {
        text.push_str("#\n# Keys that have no counterpart:\n");
    }
    for left in &imported.left_out {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# * {}: {}", left.key, left.reason);
    }
    for note in &imported.notes {
        let _ = writeln!(text, "#\n# Note: {note}.");
    }
    format!("{text}\n{}", imported.toml)
}

fn summary(report: &ImportReport) -> String {
    let left = report.left_out.iter();
    let left = left.map(|left| format!("left out: {}: {}", left.key, left.reason));
    let notes = report.notes.iter().map(|note| format!("note: {note}"));
    let lines: Vec<_> = left.chain(notes).collect();
    match lines.is_empty() {
        true => "every key has a counterpart".to_owned(),
        false => lines.join("\n"),
    }
}
