//! A daemon that serves its parameters to other machines.

use std::process::{Command, Output};

use cuzk_bounded::BoundedCommand;
use cuzk_core::circuits;
use cuzk_fetch::file_digest;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};

use crate::fixture::{Daemon, param_cache};

/// Fetches the parameters of a WinningPoSt from a daemon.
fn fetch(daemon: &Daemon, folder: &std::path::Path) -> Output {
    let log = daemon.log();
    let (_, rest) = log.rsplit_once("serves HTTP on tcp://").unwrap();
    let address = rest.split_whitespace().next().unwrap();
    Command::new(env!("CARGO_BIN_EXE_cuzk"))
        .args(["params", "fetch", "--kind", "winning-post"])
        .args(["--sector-size", "2KiB", "--digests"])
        .arg(folder.join("list.json"))
        .args(["--from", &format!("cuzk://{address}")])
        .env("FIL_PROOFS_PARAMETER_CACHE", folder.join("cache"))
        .output_bounded()
        .unwrap()
}

#[tokio::test]
async fn another_machine_fetches_parameters_where_it_is_configured() {
    let mut serving = Daemon::start("[server]\nserve_params = true\n");
    serving.client().await;
    let id = CircuitId {
        kind: ProofKind::WinningPost,
        sector_size: SectorSize::KiB2,
    };
    let files = circuits::parameter_files(id).unwrap();
    let names = [files.vk, files.params];
    let entries = names.iter().map(|name| {
        let digest = file_digest(&param_cache().join(name), |_| true).unwrap();
        format!(r#""{name}": {{"cid": "Qm1", "digest": "{digest}", "sector_size": 2048}}"#)
    });
    let entries: Vec<_> = entries.collect();
    let folder = tempfile::tempdir().unwrap();
    let list = format!("{{{}}}", entries.join(","));
    std::fs::write(folder.path().join("list.json"), list).unwrap();
    let fetched = fetch(&serving, folder.path());
    assert!(fetched.status.success(), "{fetched:?}");
    for name in &names {
        let came = std::fs::read(folder.path().join("cache").join(name)).unwrap();
        assert!(came == std::fs::read(param_cache().join(name)).unwrap());
    }

    std::fs::remove_dir_all(folder.path().join("cache")).unwrap();
    let mut closed = Daemon::start("");
    closed.client().await;
    let refused = fetch(&closed, folder.path());
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr);
    let reason = "404 Not Found: this daemon serves no parameters; set serve_params";
    assert!(said.contains(reason), "{said}");
}
