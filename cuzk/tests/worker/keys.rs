//! Folders with what the shipped configuration of several machines names: certificates, and
//! the NKEYs of a daemon and of a worker.

use std::path::{Path, PathBuf};

use cuzk_cluster::nats::Settings;
use nkeys::KeyPair as Nkey;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::server::{Server, free_port, shipped};

/// A server with TLS and NKEYs, as `configs/nats/tls.conf` says.
pub(crate) struct Trusted {
    pub(crate) server: Server,
}

impl Trusted {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Secrets::new().write(folder.path(), &shipped("local.conf.example"));
        let stranger = Nkey::new_user().seed().unwrap();
        std::fs::write(folder.path().join("stranger.nkey"), stranger).unwrap();
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

/// An authority, and the NKEYs of a daemon and of a worker.
pub(crate) struct Secrets {
    authority_pem: String,
    issuer: Issuer<'static, KeyPair>,
    daemon: Nkey,
    worker: Nkey,
}

impl Secrets {
    pub(crate) fn new() -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = authority.self_signed(&key).unwrap();
        Self {
            authority_pem: certificate.pem(),
            issuer: Issuer::new(authority, key),
            daemon: Nkey::new_user(),
            worker: Nkey::new_user(),
        }
    }

    /// Writes the files of one server: its configuration, a certificate of its own for the
    /// loopback address, and the seeds. `local` is the text of `local.conf` without keys.
    pub(crate) fn write(&self, folder: &Path, local: &str) {
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        let local = local
            .replace("UDAEMON...", &self.daemon.public_key())
            .replace("UWORKER...", &self.worker.public_key());
        write("local.conf", &local);
        write("server.conf", &shipped("tls.conf"));
        write("daemon.nkey", &self.daemon.seed().unwrap());
        write("worker.nkey", &self.worker.seed().unwrap());
        write("ca.pem", &self.authority_pem);
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        write("server.pem", &certificate.pem());
        write("server-key.pem", &key.serialize_pem());
    }
}
