//! The lines that an engine logs about its jobs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cuzk_core::engine::serve_one_command;
use cuzk_core::job::JobOptions;
use cuzk_filecoin::ProofKind;
use serde_json::Value;

use crate::common::BoundedJob as _;
use crate::common::device::{Deed, Scripted, engine_on};
use crate::common::named;
use crate::common::tiny::{self, TinyJob};
use crate::metrics::in_a_process_of_its_own;

/// A job that a bad device sends elsewhere, one whose statement is false, and one of an engine
/// that ends with a command. Lines are of the whole process.
#[test]
#[ignore = "it is the other test's child"]
fn child_that_logs() {
    tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
        .with_writer(std::io::stderr)
        .init();
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.gpus.faults_max = 1;
    config.gpus.rest = Duration::from_secs(3600);
    let device = Scripted::new(&config, |_| Deed::ErrorInStart);
    let engine = engine_on(&config, &[&device]);
    let caller = tracing::error_span!("caller", work = "far");
    let job = caller.in_scope(|| engine.submit_job(tiny::job(ProofKind::Porep, 2), named("first")));
    job.unwrap().wait_bounded().unwrap();
    let false_job = Arc::new(TinyJob {
        kind: ProofKind::SnapDeals,
        partitions: 1,
        false_partition: Some(0),
    });
    let job = engine.submit_job(false_job, named("second"));
    job.unwrap().wait_bounded().unwrap_err();
    engine.shutdown();

    let engine = engine_on(&config, &[&Scripted::good(&config)]);
    serve_one_command(&engine);
    let job = tiny::job(ProofKind::WindowPost, 1);
    let job = engine.submit_job(job, JobOptions::default());
    job.unwrap().wait_bounded().unwrap();
    engine.shutdown();
}

fn lines() -> Vec<Value> {
    let output = in_a_process_of_its_own("lines::child_that_logs");
    let text = String::from_utf8(output.stderr).unwrap();
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The fields of the one line with this message about the job of a kind.
fn line<'a>(lines: &'a [Value], message: &str, kind: &str) -> &'a Value {
    let mut found = lines
        .iter()
        .filter(|line| line["fields"]["message"] == message && line["fields"]["kind"] == kind);
    let line = found
        .next()
        .unwrap_or_else(|| panic!("{message}: {lines:#?}"));
    assert!(found.next().is_none(), "{message} is there twice");
    line
}

#[test]
fn a_job_has_a_line_at_its_start_and_at_its_end() {
    let lines = lines();
    let accepted = |kind| line(&lines, "the job is accepted", kind);
    let ended = |kind| line(&lines, "the job has ended", kind);
    let first = &accepted("porep")["fields"];
    for (field, value) in [
        ("id", Value::from("first")),
        ("sector_size", Value::from("2KiB")),
        ("priority", Value::from("normal")),
        ("partitions", Value::from(2)),
    ] {
        assert_eq!(first[field], value, "{field} in {first}");
    }
    for (kind, outcome, code) in [
        ("porep", "proved", Value::Null),
        ("snap-deals", "failed", Value::from("CUZK-0009")),
        ("window-post", "proved", Value::Null),
    ] {
        let (start, end) = (&accepted(kind)["fields"], &ended(kind)["fields"]);
        for field in ["job", "id", "kind", "sector_size"] {
            assert_eq!(start[field], end[field], "{field} of {kind}");
        }
        assert_eq!((&end["outcome"], &end["code"]), (&outcome.into(), &code));
        assert_eq!(end["error"].is_string(), code.is_string());
        for time in [
            "total_s",
            "queue_wait_s",
            "srs_load_s",
            "synthesis_s",
            "device_s",
        ] {
            assert!(end[time].as_f64().unwrap() >= 0.0, "{time} in {end}");
        }
        assert!(end["total_s"].as_f64().unwrap() > 0.0, "{end}");
        let level = if kind == "window-post" {
            "DEBUG"
        } else {
            "INFO"
        };
        assert_eq!(accepted(kind)["level"], level);
        assert_eq!(ended(kind)["level"], level);
    }
}

#[test]
fn every_line_that_is_written_for_a_job_names_it() {
    let lines = lines();
    let of = |line: &Value, name: &str| {
        let places = [&line["fields"][name], &line["span"][name]];
        places.into_iter().find(|value| !value.is_null()).cloned()
    };
    for (message, id) in [
        ("a partition has to be proved again", "first"),
        // It says nothing of a job: the thread does that was at work for one.
        ("the device failed too often", "first"),
    ] {
        let begins = |line: &&Value| {
            let text = line["fields"]["message"].as_str();
            text.is_some_and(|text| text.starts_with(message))
        };
        let line = lines
            .iter()
            .find(begins)
            .unwrap_or_else(|| panic!("{message}"));
        assert!(of(line, "job").is_some(), "{line}");
        assert_eq!(of(line, "id"), Some(id.into()), "{line}");
    }
    // The first job's lines lie within the span in which it was submitted, and the second's do not.
    let has = |line: &Value, field: &str, value: &str| {
        let spans = line["spans"].as_array();
        let spans = spans.into_iter().flatten();
        spans
            .chain([&line["fields"]])
            .any(|part| part[field] == value)
    };
    for (id, lies_within) in [("first", true), ("second", false)] {
        let lines: Vec<_> = lines.iter().filter(|line| has(line, "id", id)).collect();
        assert!(lines.len() > 1, "{id}");
        for line in lines {
            assert_eq!(has(line, "work", "far"), lies_within, "{line}");
        }
    }
    // One number stands for one id. The second engine's job has none.
    let mut ids = BTreeMap::new();
    for line in &lines {
        if let (Some(job), Some(id)) = (of(line, "job"), of(line, "id")) {
            let known = ids.entry(job.as_u64()).or_insert_with(|| id.clone());
            assert_eq!(*known, id, "{line}");
        }
    }
    assert_eq!(ids.len(), 2);
}
