//! A nats-server of its own for each test, with the configurations that cuzk ships.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream;
use cuzk_bounded::{BoundedChild, LIMIT};
use tempfile::TempDir;

/// Ports below those from which Linux takes one for a connection, unless it is told otherwise.
const PORTS: Range<u16> = 15_000..32_000;

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

/// Returns a port that nobody uses at this moment. Each call of this process returns another one,
/// and the system chooses none of [`PORTS`] by itself.
pub(crate) fn free_port() -> u16 {
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
        Self::start_configured(port, &shipped("loopback.conf"))
    }

    /// Starts a server with the text of its configuration.
    pub(crate) fn start_configured(port: u16, config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("server.conf"), config).unwrap();
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
        server.wait_bounded();
        server
    }

    /// Ends the server at once, as a power cut would.
    #[allow(dead_code, reason = "the tests of the cluster use it")]
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait_bounded().unwrap();
    }

    /// Starts a server that was killed, with its folder and on its port.
    #[allow(dead_code, reason = "the tests of the cluster use it")]
    pub(crate) fn restart(&mut self) {
        self.child = spawn(self.folder.path(), self.port);
        self.wait_bounded();
    }

    /// Returns the number of the process.
    #[allow(dead_code, reason = "the tests of the cluster use it")]
    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    fn wait_bounded(&mut self) {
        let until = Instant::now() + LIMIT;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{}", self.log());
            assert!(Instant::now() < until, "it does not listen: {}", self.log());
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

/// Answers as a server of this version until the client leaves. Returns its address.
pub(crate) fn old_server(version: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = move |mut stream: TcpStream| -> std::io::Result<()> {
        let info = format!(
            "INFO {{\"server_id\":\"A\",\"server_name\":\"a\",\"version\":\"{version}\",\
             \"proto\":1,\"host\":\"127.0.0.1\",\"port\":{},\"max_payload\":1048576,\
             \"headers\":true,\"jetstream\":true}}\r\n",
            address.port()
        );
        stream.write_all(info.as_bytes())?;
        for line in BufReader::new(stream.try_clone()?).lines() {
            if line?.starts_with("PING") {
                stream.write_all(b"PONG\r\n")?;
            }
        }
        Ok(())
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(stream));
        }
    });
    format!("nats://{address}")
}

/// Makes a stream of work with other settings than cuzk's.
pub(crate) async fn make_foreign_stream(server: &Server) {
    let client = async_nats::connect(server.url()).await.unwrap();
    let config = jetstream::stream::Config {
        name: "CUZK_WORK".to_owned(),
        subjects: vec!["cuzk.work.>".to_owned()],
        ..Default::default()
    };
    jetstream::new(client).create_stream(config).await.unwrap();
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
        let _ = self.child.wait_bounded();
    }
}
