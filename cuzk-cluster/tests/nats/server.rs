//! A nats-server of its own for each test.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cuzk_bounded::{BoundedChild, bounded};
use cuzk_cluster::nats::Settings;
use tempfile::TempDir;

/// Ports below those from which Linux takes one for a connection, unless it is told otherwise.
const PORTS: Range<u16> = 15_000..32_000;

/// Returns the path of nats-server.
pub(crate) fn binary() -> PathBuf {
    let path = std::env::var_os("CUZK_NATS_SERVER").map(PathBuf::from);
    path.unwrap_or_else(|| panic!("CUZK_NATS_SERVER is not set; .ci/nats-server prints its value"))
}

pub(crate) struct Server {
    binary: PathBuf,
    folder: TempDir,
    port: u16,
    child: Child,
}

/// Returns a port that nobody uses at this moment. Each call of this process returns another one,
/// and the system chooses none of [`PORTS`] by itself.
fn free_port() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let count = u32::from(PORTS.end - PORTS.start);
    // Other tests that run at the same time begin elsewhere.
    let first = std::process::id().wrapping_mul(389);
    for _ in 0..count {
        let next = first.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + u16::try_from(next % count).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("all ports of {PORTS:?} are in use");
}

/// A port that the system chose could be given to another test before a server takes it.
#[test]
fn a_free_port_is_returned_once() {
    let ports: BTreeSet<u16> = (0..500).map(|_| free_port()).collect();
    assert_eq!(ports.len(), 500);
    assert!(ports.iter().all(|port| PORTS.contains(port)));
}

impl Server {
    /// Starts a server with JetStream. `more` are further lines of its configuration.
    pub(crate) fn start(binary: &Path, more: &str) -> Self {
        Self::start_at(binary, free_port(), more)
    }

    /// Starts three servers that keep copies of each other's streams: `nats-0` to `nats-2`.
    pub(crate) fn start_three(binary: &Path) -> [Self; 3] {
        let routes = [(); 3].map(|()| free_port());
        let all = routes.map(|port| format!("nats://127.0.0.1:{port}"));
        [0, 1, 2].map(|number| {
            let more = format!(
                "server_name: nats-{number}\n\
                 cluster {{ name: cuzk, listen: 127.0.0.1:{}, routes: [{}] }}",
                routes[number],
                all.join(", ")
            );
            Self::start_at(binary, free_port(), &more)
        })
    }

    fn start_at(binary: &Path, port: u16, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        let config = format!(
            "listen: 127.0.0.1:{port}\n\
             jetstream {{ store_dir: {:?}, sync_interval: always }}\n{more}\n",
            store.to_str().unwrap()
        );
        std::fs::write(folder.path().join("server.conf"), config).unwrap();
        let child = spawn(binary, folder.path());
        let server = Self {
            binary: binary.to_owned(),
            folder,
            port,
            child,
        };
        server.wait_bounded();
        server
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            addresses: vec![format!("nats://127.0.0.1:{}", self.port)],
            ..Settings::default()
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait_bounded().unwrap();
    }

    pub(crate) fn restart(&mut self) {
        self.child = spawn(&self.binary, self.folder.path());
        self.wait_bounded();
    }

    fn wait_bounded(&self) {
        bounded(|| {
            while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait_bounded();
    }
}

fn spawn(binary: &Path, folder: &Path) -> Child {
    Command::new(binary)
        .arg("--config")
        .arg(folder.join("server.conf"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
