//! A client that is not trusted, or does not trust, is told from a daemon that is gone.

use std::path::PathBuf;

use cuzk_bounded::Bound;
use cuzk_core::config::Address;
use cuzk_server::client::{Client, ClientError, Credentials};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use tempfile::TempDir;

use crate::service::Running;

/// A folder with an authority, and certificates that it signed.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        let issuer = Issuer::new(params, key);
        Self { issuer, folder }
    }

    /// Writes `NAME.pem` and `NAME.key`, valid until the end of `year`.
    fn sign(&self, name: &str, year: i32) {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(name, "pem"), certificate.pem()).unwrap();
        std::fs::write(self.path(name, "key"), key.serialize_pem()).unwrap();
    }

    fn path(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.{extension}"))
    }

    /// Starts a service with a certificate, for clients with certificates of `client_ca`.
    fn serve(&self, name: &str, client_ca: &Self) -> Running {
        Running::start(&format!(
            "tls_certificate = \"{}\"\ntls_key = \"{}\"\nclient_ca = \"{}\"\n",
            self.path(name, "pem").display(),
            self.path(name, "key").display(),
            client_ca.path("ca", "pem").display(),
        ))
    }

    fn credentials(&self, name: &str) -> Credentials {
        Credentials {
            authority: Some(self.path("ca", "pem")),
            certificate: Some(self.path(name, "pem")),
            key: Some(self.path(name, "key")),
            ..Credentials::default()
        }
    }
}

/// Asks a service for its status, with certificates.
async fn ask(running: &Running, credentials: &Credentials) -> Result<(), ClientError> {
    let address = Address::Tcp {
        host: "127.0.0.1".to_owned(),
        port: running.port(),
    };
    let client = Client::connect(&address, credentials).await?;
    client.status().await.map(|_| ())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_not_trusted_is_named() {
    let _bound = Bound::default();
    let (ours, theirs) = (Authority::new(), Authority::new());
    for authority in [&ours, &theirs] {
        authority.sign("good", 2999);
        authority.sign("expired", 2001);
    }
    let good = ours.serve("good", &ours);
    let expired = ours.serve("expired", &ours);
    let foreign = Credentials {
        authority: Some(ours.path("ca", "pem")),
        ..theirs.credentials("good")
    };
    ask(&good, &ours.credentials("good")).await.unwrap();
    for (running, credentials, reason) in [
        (&good, ours.credentials("expired"), "xpired"),
        (&good, foreign, "fatal alert"),
        (
            &good,
            theirs.credentials("good"),
            "invalid peer certificate",
        ),
        (&expired, ours.credentials("good"), "xpired"),
    ] {
        let error = ask(running, &credentials).await.unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, ClientError::Untrusted { .. }), "{said}");
        assert!(said.contains(reason), "{said}");
        assert!(said.contains("check --ca"), "{said}");
    }
}
