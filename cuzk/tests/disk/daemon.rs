//! A daemon whose journal is on a disk that becomes full.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use cuzk_bounded::{BoundedCommand, Killed};
use cuzk_core::error::ErrorCode::JournalFailing;

use crate::common::{CACHE, data, generate, param_cache, text};
use crate::small_disk::{Disk, START};

/// Long enough for anything that ends at all, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// Writes to a disk until it takes no more.
fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    let error = loop {
        if let Err(error) = file.write_all(&[0; 4096]) {
            break error;
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
}

#[test]
fn a_daemon_without_room_for_its_journal_refuses_jobs_until_there_is_room() {
    let Some(disk) =
        Disk::new("a_daemon_without_room_for_its_journal_refuses_jobs_until_there_is_room")
    else {
        return;
    };
    generate("window-post");
    let (config, socket) = (disk.beside("cuzk.toml"), disk.beside("cuzk.sock"));
    let jobs = format!(
        "[jobs]\njournal = {:?}\n[server]\nhttp = \"\"\n[srs]\nmultiples = []\n",
        text(&disk.path("jobs"))
    );
    std::fs::write(&config, jobs).unwrap();
    let address = format!("unix://{}", socket.display());
    let serve = [
        env!("CARGO_BIN_EXE_cuzk"),
        "serve",
        "--config",
        text(&config),
    ];
    let serve = [&serve[..], &["--listen", &address]].concat();
    let log = std::fs::File::create(disk.beside("log")).unwrap();
    let mut command = disk.command(disk.enter, START, 16 << 20, &serve);
    command.env(CACHE, param_cache());
    command.stdout(Stdio::null()).stderr(log);
    let mut daemon = Killed(command.spawn().unwrap());
    let read_log = || std::fs::read_to_string(disk.beside("log")).unwrap();
    let until = Instant::now() + PATIENCE;
    while !read_log().contains("serves clients on") {
        assert!(Instant::now() < until, "{}", read_log());
        assert!(daemon.0.try_wait().unwrap().is_none(), "{}", read_log());
        thread::sleep(Duration::from_millis(20));
    }
    // The daemon's own view of the disk.
    let seen = Path::new("/proc").join(daemon.0.id().to_string());
    let filled = seen
        .join("root")
        .join(disk.path("fill").strip_prefix("/").unwrap());
    fill(&filled);
    let submit = |kind: &str, retry_s: u64| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk"));
        command.args(["submit", "--retry-s", &retry_s.to_string()]);
        command.args(["--address", &address]);
        command.arg("--request").arg(data(&format!("{kind}.json")));
        command.arg("--out").arg(disk.beside("proof"));
        command.output_bounded().unwrap()
    };
    for retry_s in [0, 1] {
        let began = Instant::now();
        let refused = submit("porep", retry_s);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{said}\n{}", read_log());
        assert!(said.contains(&format!("[{JournalFailing}]")), "{said}");
        assert!(said.contains(text(&disk.path("jobs"))), "{said}");
        // The call is repeated until the time is over.
        assert!(began.elapsed() >= Duration::from_secs(retry_s), "{said}");
        assert!(!disk.beside("proof").exists());
        assert!(daemon.0.try_wait().unwrap().is_none(), "{}", read_log());
    }

    std::fs::remove_file(&filled).unwrap();
    // The store is opened again by one of the next calls.
    let proved = submit("window-post", PATIENCE.as_secs());
    assert!(proved.status.success(), "{proved:?}\n{}", read_log());
    assert_eq!(std::fs::read(disk.beside("proof")).unwrap().len(), 192);
    assert!(!read_log().contains("panicked"), "{}", read_log());
}
