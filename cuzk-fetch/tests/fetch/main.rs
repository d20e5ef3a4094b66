//! Fetches from servers that cut, lie, wait and die. The servers count the bytes that they
//! sent.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod corrupt;
mod cuts;
mod killed;
mod places;
mod refusals;
mod server;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cuzk_fetch::{
    Digest, Digests, Event, FetchError, ListedFile, Observer, Options, Outcome, Progress, Report,
    fetch,
};

/// The name of the file of most tests.
const NAME: &str = "v28-test.params";

/// Returns bytes that do not repeat at any power of two.
fn made(length: usize) -> Vec<u8> {
    let byte = |number: usize| number.to_le_bytes()[0];
    (0..length)
        .map(|at| byte(at % 251) ^ byte(at / 251 % 241))
        .collect()
}

/// Returns the list entries of files.
fn listed(files: &[(&str, &[u8])]) -> Vec<ListedFile> {
    let entries = files.iter().enumerate().map(|(at, (name, bytes))| {
        let digest = Digest::of_bytes(bytes);
        format!(r#""{name}": {{"cid": "Qm{at}", "digest": "{digest}", "sector_size": 2048}}"#)
    });
    let entries: Vec<_> = entries.collect();
    let list = Digests::parse(&format!("{{{}}}", entries.join(","))).unwrap();
    list.files().cloned().collect()
}

/// Returns choices with small ranges.
fn options(folder: &Path, sources: &[String]) -> Options {
    let sources = sources
        .iter()
        .map(|source| source.parse().unwrap())
        .collect();
    Options {
        jobs: 4,
        range_bytes: 64 << 10,
        patience: Duration::from_secs(60),
        failures_max: 5,
        ..Options::new(folder.to_owned(), sources)
    }
}

/// Keeps all events, and stops the fetch at one or at a number of bytes.
#[derive(Default)]
struct Seen<'a> {
    events: Vec<Event>,
    stop: Option<&'a AtomicBool>,
    stop_at_bytes: Option<u64>,
    stop_at: Option<fn(&Event) -> bool>,
}

impl Observer for Seen<'_> {
    fn event(&mut self, event: &Event) {
        self.events.push(event.clone());
        if let (Some(stop), Some(stop_at)) = (self.stop, self.stop_at)
            && stop_at(event)
        {
            stop.store(true, Ordering::SeqCst);
        }
    }

    fn progress(&mut self, progress: &Progress) {
        if let (Some(stop), Some(bytes)) = (self.stop, self.stop_at_bytes)
            && progress.present_bytes >= bytes
        {
            stop.store(true, Ordering::SeqCst);
        }
    }
}

/// Fetches to the end. Returns the report and all events.
fn run(files: &[ListedFile], options: Options) -> Result<(Report, Vec<Event>), FetchError> {
    let mut seen = Seen::default();
    let report = fetch(files, options, &AtomicBool::new(false), &mut seen)?;
    Ok((report, seen.events))
}

/// Fetches one file of these bytes, and checks that they came.
fn run_whole(folder: &Path, sources: &[String], bytes: &[u8]) -> (Report, Vec<Event>) {
    let (report, events) = run(&listed(&[(NAME, bytes)]), options(folder, sources)).unwrap();
    assert!(report.is_complete(), "{report:?}\n{events:?}");
    assert!(std::fs::read(folder.join(NAME)).unwrap() == bytes);
    assert_eq!(
        names_in(folder),
        [
            ".cuzk-verified.json",
            "fetch.lock",
            NAME,
            &format!("{NAME}.lock")
        ]
    );
    (report, events)
}

/// Returns the reason for which the only file failed.
fn failure(report: &Report) -> &str {
    match &report.files[0].outcome {
        Outcome::Failed(problem) => problem,
        other => panic!("{other:?}"),
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}
