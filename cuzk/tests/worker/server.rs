//! A nats-server of its own for each test, with the configurations that cuzk ships.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// Returns the path of nats-server.
fn binary() -> PathBuf {
    let path = std::env::var_os("CUZK_NATS_SERVER").map(PathBuf::from);
    path.unwrap_or_else(|| panic!("CUZK_NATS_SERVER is not set; .ci/nats-server prints its value"))
}

/// Returns the text of a shipped file.
pub(crate) fn shipped(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/nats");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Returns a port that nobody uses at this moment.
pub(crate) fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port()
}

pub(crate) struct Server {
    pub(crate) folder: TempDir,
    pub(crate) port: u16,
    child: Child,
}

impl Server {
    /// Starts a server as `configs/nats/loopback.conf` says, on a port of its own.
    pub(crate) fn start() -> Self {
        Self::start_at(free_port())
    }

    pub(crate) fn start_at(port: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("server.conf"), shipped("loopback.conf")).unwrap();
        Self::start_in(folder, port)
    }

    /// Starts a server in a folder with `server.conf`.
    pub(crate) fn start_in(folder: TempDir, port: u16) -> Self {
        let child = spawn(folder.path(), port);
        let mut server = Self {
            folder,
            port,
            child,
        };
        server.wait();
        server
    }

    /// Ends the server at once, as a power cut would.
    #[allow(dead_code, reason = "the tests of the cluster use it")]
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts a server that was killed, with its folder and on its port.
    #[allow(dead_code, reason = "the tests of the cluster use it")]
    pub(crate) fn restart(&mut self) {
        self.child = spawn(self.folder.path(), self.port);
        self.wait();
    }

    fn wait(&mut self) {
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("server.log")).unwrap_or_default()
    }
}

fn spawn(folder: &Path, port: u16) -> Child {
    let log = std::fs::File::create(folder.join("server.log")).unwrap();
    Command::new(binary())
        .args(["--config", "server.conf", "--addr", "127.0.0.1"])
        .args(["--port", &port.to_string()])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
