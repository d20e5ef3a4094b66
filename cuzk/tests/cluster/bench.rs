//! The stage of `cuzk bench` that measures what a cluster adds.

use std::process::Command;

use cuzk_bounded::BoundedCommand;

use crate::fixture::param_cache;
use crate::server::Server;

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn the_stage_of_the_cluster_prints_the_machine_and_its_line() {
    let server = Server::start();
    let config = server.folder.path().join("cuzk.toml");
    let servers = format!("[cluster]\nservers = [\"{}\"]\n", server.url());
    std::fs::write(&config, servers).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_cuzk"))
        .arg("--config")
        .arg(&config)
        .args(["bench", "cluster", "--runs", "1"])
        .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
        .output_bounded()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("machine: "), "{text}");
    let line = "cluster window-post, 1 partition(s), ";
    assert!(lines[1].starts_with(line), "{text}");
}
