//! A folder with what the shipped configuration of several machines names: certificates, and
//! the NKEYs of a daemon and of a worker.

use std::path::{Path, PathBuf};

use cuzk_cluster::nats::Settings;
use nkeys::KeyPair as Nkey;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use crate::server::{Server, free_port, shipped};

/// A server with TLS and NKEYs, as `configs/nats/tls.conf` says.
pub(crate) struct Trusted {
    pub(crate) server: Server,
}

impl Trusted {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        certificates(&folder);
        let [daemon, worker] = ["daemon", "worker"].map(|name| seed(folder.path(), name));
        let local = shipped("local.conf.example")
            .replace("UDAEMON...", &daemon)
            .replace("UWORKER...", &worker);
        std::fs::write(folder.path().join("local.conf"), local).unwrap();
        std::fs::write(folder.path().join("server.conf"), shipped("tls.conf")).unwrap();
        seed(folder.path(), "stranger");
        Self {
            server: Server::start_in(folder, free_port()),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.server.folder.path().join(name)
    }

    pub(crate) fn url(&self) -> String {
        format!("tls://127.0.0.1:{}", self.server.port)
    }

    pub(crate) fn settings(&self, user: &str) -> Settings {
        Settings {
            addresses: vec![self.url()],
            credentials: Some(self.path(&format!("{user}.nkey"))),
            server_ca: Some(self.path("ca.pem")),
            ..Settings::default()
        }
    }

    /// Returns the section of the cluster for a user.
    pub(crate) fn config(&self, user: &str) -> String {
        format!(
            "[cluster]\nservers = [{:?}]\ncredentials = {:?}\nserver_ca = {:?}\nname = \"hands\"\n",
            self.url(),
            self.path(&format!("{user}.nkey")),
            self.path("ca.pem"),
        )
    }
}

/// Writes the file of a new user's seed, and returns the public key.
fn seed(folder: &Path, name: &str) -> String {
    let key = Nkey::new_user();
    let seed = key.seed().unwrap();
    std::fs::write(folder.join(format!("{name}.nkey")), seed).unwrap();
    key.public_key()
}

/// Writes `ca.pem`, `server.pem` and `server-key.pem`, for the loopback address.
fn certificates(folder: &TempDir) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = authority.self_signed(&key).unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    write("ca.pem", certificate.pem());
    let issuer = Issuer::new(authority, key);
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    write("server.pem", params.signed_by(&key, &issuer).unwrap().pem());
    write("server-key.pem", key.serialize_pem());
}
