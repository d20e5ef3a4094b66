use std::collections::BTreeSet;

use super::super::{Config, Host};
use super::*;

fn host() -> Host {
    Host {
        name: None,
        cores: 96,
        memory_bytes: Some(512 << 30),
        cuda: true,
        param_cache: None,
        state_dir: None,
    }
}

/// Every key that the other daemon reads or ignores.
const WHOLE: &str = r#"
[daemon]
listen = "0.0.0.0:9820"
status_listen = "127.0.0.1:9821"
[memory]
total_budget = "400GiB"
safety_margin = "5GiB"
eviction_min_idle = "5m"
pinned_budget = "50GiB"
working_memory_budget = "10GiB"
[gpus]
devices = [0, 1]
gpu_threads = 32
gpu_workers_per_device = 2
[scheduler]
max_batch_size = 1
max_batch_wait_ms = 10000
sort_by_type = true
[synthesis]
threads = 64
partition_workers = 12
[pipeline]
enabled = true
synthesis_lookahead = 1
synthesis_concurrency = 4
slot_size = 3
max_gpu_queue_depth = 8
[srs]
param_cache = "/data/params"
preload = ["porep-32g"]
[logging]
level = "debug"
format = "json"
"#;

fn resolved(imported: &Imported) -> Config {
    Config::parse(&imported.toml, "imported", &host()).unwrap()
}

fn left_out(imported: &Imported) -> Vec<&str> {
    imported.left_out.iter().map(|left| &*left.key).collect()
}

#[test]
fn what_has_a_counterpart_resolves_to_the_same_values() {
    let imported = import(WHOLE, "old.toml").unwrap();
    let config = resolved(&imported);
    assert_eq!(config.server.listen[0].to_string(), "tcp://0.0.0.0:9820");
    assert_eq!(
        config.server.http.unwrap().to_string(),
        "tcp://127.0.0.1:9821"
    );
    assert_eq!(config.memory.total_budget_bytes, 400 << 30);
    assert_eq!(
        config.gpus.devices,
        super::super::Devices::Ordinals(vec![0, 1])
    );
    assert_eq!(config.gpus.gpu_threads, 32);
    assert_eq!(config.synthesis.threads, 64);
    assert_eq!(config.synthesis.partition_workers, 4);
    assert_eq!(config.pipeline.synthesis_lookahead, 8);
    assert_eq!(config.srs.param_cache.to_str(), Some("/data/params"));
    assert_eq!(config.logging.level.as_str(), "debug");
    assert_eq!(imported.notes.len(), 1, "{:?}", imported.notes);
}

#[test]
fn each_other_key_is_named_with_a_reason() {
    let imported = import(WHOLE, "old.toml").unwrap();
    let named: BTreeSet<_> = left_out(&imported).into_iter().collect();
    let expected = [
        "memory.eviction_min_idle",
        "memory.pinned_budget",
        "memory.safety_margin",
        "memory.working_memory_budget",
        "pipeline.enabled",
        "pipeline.slot_size",
        "pipeline.synthesis_lookahead",
        "scheduler.max_batch_size",
        "scheduler.max_batch_wait_ms",
        "scheduler.sort_by_type",
        "srs.preload",
        "synthesis.partition_workers",
    ];
    assert_eq!(named, expected.into_iter().collect());
    for left in &imported.left_out {
        assert!(left.reason.len() > 20 && left.reason != UNKNOWN, "{left:?}");
    }
}

#[test]
fn an_empty_file_keeps_the_other_daemons_own_values() {
    let imported = import("", "old.toml").unwrap();
    let config = resolved(&imported);
    assert_eq!(
        config.server.listen[0].to_string(),
        "unix:///run/curio/cuzk.sock"
    );
    assert_eq!(config.server.http, None);
    assert_eq!(config.memory.safety_margin_bytes, 5 << 30);
    assert_eq!(config.srs.param_cache.to_str(), Some("/data/zk/params"));
    assert!(imported.left_out.is_empty() && imported.notes.is_empty());
}

#[test]
fn values_that_mean_something_else_are_left_out() {
    let text = "[gpus]\ndevices = []\n[synthesis]\nthreads = 0\n[pipeline]\n\
                synthesis_lookahead = 0\nmax_gpu_queue_depth = 0\n[logging]\n\
                level = \"info,h2=warn\"\nformat = \"pretty\"\n[extra]\na = 1\nb = 2\n";
    let text = format!("top = 1\n{text}");
    let imported = import(&text, "old.toml").unwrap();
    let config = resolved(&imported);
    assert_eq!(config.gpus.devices, super::super::Devices::Auto);
    assert_eq!(config.synthesis.threads, 96);
    assert_eq!(config.pipeline.synthesis_lookahead, 1);
    assert_eq!(config.logging.format.as_str(), "text");
    let named: BTreeSet<_> = left_out(&imported).into_iter().collect();
    let expected = [
        "extra.a",
        "extra.b",
        "logging.level",
        "pipeline.max_gpu_queue_depth",
        "pipeline.synthesis_lookahead",
        "synthesis.threads",
        "top",
    ];
    assert_eq!(named, expected.into_iter().collect());
}

#[test]
fn a_text_that_is_not_toml_is_told_with_its_line() {
    let error = import("[daemon]\nlisten = /run\n", "old.toml").unwrap_err();
    let told = error.to_string();
    assert!(
        told.contains("old.toml") && told.contains("line 2"),
        "{told}"
    );
}
