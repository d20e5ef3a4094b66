//! The document of `/metrics`, read by a strict parser.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cuzk_bounded::Bound;
use cuzk_core::metrics::{Evicted, Fault, Outcome, Refusal};
use cuzk_core::metrics::{
    buffers_kept, device_fault, device_quarantined, evicted, job_accepted, job_ended, job_refused,
    memory_budget, memory_reserved,
};
use cuzk_core::timeline::Stage;
use cuzk_server::http::metrics::Metrics;

use crate::made_up::{GIB, MadeUp, get};

#[derive(Debug)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

#[derive(Debug)]
struct Family {
    name: String,
    kind: String,
    help: String,
    samples: Vec<Sample>,
}

fn is_name(name: &str) -> bool {
    let first = name.starts_with(|c: char| c.is_ascii_lowercase());
    first
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn sample(line: &str) -> Sample {
    let (head, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = match head.split_once('{') {
        Some((name, rest)) => (name, rest.strip_suffix('}').unwrap()),
        None => (head, ""),
    };
    assert!(is_name(name), "{line}");
    let mut found = BTreeMap::new();
    for label in labels.split(',').filter(|label| !label.is_empty()) {
        let (key, value) = label.split_once("=\"").unwrap();
        let value = value.strip_suffix('"').unwrap();
        assert!(is_name(key) && !value.contains(['"', '\\', '\n']), "{line}");
        assert!(
            found.insert(key.to_owned(), value.to_owned()).is_none(),
            "{line}"
        );
    }
    Sample {
        name: name.to_owned(),
        labels: found,
        value: value.parse().unwrap(),
    }
}

/// Parses the text format: each family has a HELP, then a TYPE, then its samples.
fn parse(text: &str) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    let mut help: Option<(String, String)> = None;
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, words) = rest.split_once(' ').unwrap();
            assert!(help.is_none(), "{line}: the HELP before it has no TYPE");
            help = Some((name.to_owned(), words.to_owned()));
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            let (of, words) = help.take().unwrap_or_else(|| panic!("{line}: no HELP"));
            assert_eq!(of, name);
            assert!(
                families.iter().all(|family| family.name != name),
                "{name} twice"
            );
            families.push(Family {
                name: name.to_owned(),
                kind: kind.to_owned(),
                help: words,
                samples: Vec::new(),
            });
        } else {
            let family = families.last_mut().unwrap();
            let sample = sample(line);
            let suffix = sample.name.strip_prefix(&family.name).unwrap_or("?");
            let suffixes: &[&str] = match family.kind.as_str() {
                "counter" | "gauge" => &[""],
                "histogram" => &["_bucket", "_sum", "_count"],
                "summary" => &["_sum", "_count"],
                other => panic!("{other}"),
            };
            assert!(suffixes.contains(&suffix), "{line}: not of {}", family.name);
            family.samples.push(sample);
        }
    }
    families
}

/// Records every metric of the engine at least once.
fn recorded() -> String {
    let metrics = Metrics::install().unwrap();
    job_accepted("porep");
    job_refused("porep", Refusal::Busy);
    job_ended("porep", Outcome::Proved, Duration::from_millis(1500));
    job_ended("porep", Outcome::Proved, Duration::from_secs(7200));
    job_ended("winning-post", Outcome::Failed, Duration::from_millis(20));
    device_fault(0, Fault::Rejected);
    device_quarantined(0, true);
    memory_budget(64 * GIB);
    memory_reserved(GIB);
    buffers_kept(GIB);
    evicted(Evicted::Params);
    let sources = MadeUp::default();
    let trace = sources.timeline.trace(1, Some(0)).on_device(0);
    trace.time(Stage::Device, || ());
    metrics.recorded()
}

async fn families() -> (String, Vec<Family>) {
    let sources = MadeUp {
        recorded: recorded(),
        ..MadeUp::default()
    };
    let (code, text) = get(sources, "/metrics").await;
    assert_eq!(code, 200);
    let families = parse(&text);
    (text, families)
}

/// Two counters that the existing daemon has without the suffix.
const EXCEPTIONS: [&str; 2] = ["cuzk_proofs_completed", "cuzk_proofs_failed"];

fn check_names(families: &[Family]) {
    for family in families {
        let Family {
            name,
            kind,
            help,
            samples,
        } = family;
        assert!(is_name(name) && name.starts_with("cuzk_"), "{name}");
        assert!(help.len() > 4 && !samples.is_empty(), "{name}");
        for unit in [
            "_ms",
            "_us",
            "milliseconds",
            "microseconds",
            "_kib",
            "_mib",
            "minutes",
        ] {
            assert!(!name.contains(unit), "{name}: not a base unit");
        }
        let excepted = EXCEPTIONS.contains(&name.as_str());
        if kind == "counter" && !excepted {
            assert!(name.ends_with("_total"), "{name}");
        }
        if matches!(kind.as_str(), "histogram" | "summary") {
            assert!(name.ends_with("_seconds"), "{name}");
        }
        let series: BTreeSet<_> = samples.iter().map(|s| (&s.name, &s.labels)).collect();
        assert_eq!(
            series.len(),
            samples.len(),
            "{name}: a series is there twice"
        );
    }
}

fn check_histogram(family: &Family) -> usize {
    let mut by_labels: BTreeMap<_, Vec<(f64, f64)>> = BTreeMap::new();
    for sample in family
        .samples
        .iter()
        .filter(|s| s.name.ends_with("_bucket"))
    {
        let mut labels = sample.labels.clone();
        let bound: f64 = labels.remove("le").unwrap().parse().unwrap();
        by_labels
            .entry(labels)
            .or_default()
            .push((bound, sample.value));
    }
    for (labels, buckets) in &by_labels {
        assert!(
            buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1),
            "{labels:?}"
        );
        let last = buckets.last().unwrap();
        assert!(last.0.is_infinite());
        assert!(
            buckets
                .iter()
                .any(|bucket| (bucket.0 - 3600.0).abs() < 1e-9)
        );
        let is_count = |s: &&Sample| s.name.ends_with("_count") && s.labels == *labels;
        let count = family.samples.iter().find(is_count).unwrap();
        assert!((count.value - last.1).abs() < 1e-9, "{labels:?}");
    }
    by_labels.len()
}

/// One test, since a process has one recorder.
#[tokio::test]
async fn the_metrics_follow_the_rules() {
    let _bound = Bound::default();
    let (text, families) = families().await;
    check_names(&families);
    let named = |name: &str| families.iter().find(|family| family.name == name);
    let histograms = ["cuzk_job_seconds", "cuzk_stage_seconds"];
    for name in histograms {
        let family = named(name).unwrap();
        assert_eq!(family.kind, "histogram", "{name}");
        assert!(check_histogram(family) > 0, "{name}");
    }
    let existing = [
        ("cuzk_proofs_completed_total 6", "counter"),
        ("cuzk_proofs_failed_total 1", "counter"),
        ("cuzk_queue_depth 1", "gauge"),
        (
            "cuzk_proofs_completed{proof_kind=\"porep-c2\"} 4",
            "counter",
        ),
        ("cuzk_proofs_failed{proof_kind=\"porep-c2\"} 1", "counter"),
        ("cuzk_running_jobs 1", "gauge"),
        ("cuzk_gpu_workers 2", "gauge"),
        ("cuzk_uptime_seconds 100.7", "gauge"),
    ];
    for (line, kind) in existing {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        let name = line.split([' ', '{']).next().unwrap();
        assert_eq!(named(name).unwrap().kind, kind, "{name}");
    }
    let durations = "cuzk_proof_duration_seconds_count{proof_kind=\"porep-c2\"} 2";
    assert!(text.lines().any(|found| found == durations), "{text}");
    assert!(text.contains("cuzk_build_info{version=\""));
}
