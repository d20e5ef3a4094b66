use std::fs;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use tempfile::TempDir;

use super::*;

/// A folder with an authority, and certificates that it signed.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) folder: TempDir,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        let issuer = Issuer::new(params, key);
        Self { issuer, folder }
    }

    /// Writes `NAME.pem` and `NAME.key`, valid until the end of `year`.
    pub(crate) fn sign(&self, name: &str, year: i32) {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.path(name, "pem"), certificate.pem()).unwrap();
        fs::write(self.path(name, "key"), key.serialize_pem()).unwrap();
    }

    pub(crate) fn path(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.{extension}"))
    }

    pub(crate) fn client(&self, name: &str) -> ClientConfig {
        let (certificate, key) = (self.path(name, "pem"), self.path(name, "key"));
        let ca = self.path("ca", "pem");
        client_config(
            source("c", &certificate),
            source("k", &key),
            source("a", &ca),
        )
        .unwrap()
    }
}

fn source<'a>(key: &'static str, path: &'a Path) -> Source<'a> {
    Source { key, path }
}

#[test]
fn a_certificate_that_has_expired_is_noticed() {
    let authority = Authority::new();
    authority.sign("old", 2001);
    authority.sign("new", 2999);
    let chain = |name| {
        source("c", &authority.path(name, "pem"))
            .certificates()
            .unwrap()
    };
    assert!(has_expired(&chain("old"), UnixTime::now()));
    assert!(!has_expired(&chain("new"), UnixTime::now()));
}

#[test]
fn every_file_that_cannot_be_used_is_named_with_its_key() {
    let authority = Authority::new();
    authority.sign("one", 2999);
    authority.sign("two", 2999);
    let empty = authority.path("empty", "pem");
    fs::write(&empty, "").unwrap();
    let (missing, ca) = (
        authority.path("missing", "pem"),
        authority.path("ca", "pem"),
    );
    let (one, one_key) = (authority.path("one", "pem"), authority.path("one", "key"));
    let two_key = authority.path("two", "key");
    for (certificate, key, ca, expected) in [
        (
            &missing,
            &one_key,
            &ca,
            ["server.tls_certificate: ", "missing.pem"],
        ),
        (
            &empty,
            &one_key,
            &ca,
            ["server.tls_certificate: ", "no certificate is in it"],
        ),
        (
            &one,
            &one,
            &ca,
            ["server.tls_key: ", "no private key is in it"],
        ),
        (
            &one,
            &two_key,
            &ca,
            ["server.tls_key: ", "the key that belongs to it"],
        ),
        (
            &one,
            &one_key,
            &one_key,
            ["server.client_ca: ", "no certificate is in it"],
        ),
    ] {
        let error = server_config(
            source("server.tls_certificate", certificate),
            source("server.tls_key", key),
            Some(source("server.client_ca", ca)),
        );
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with(expected[0]) && error.contains(expected[1]),
            "{error}"
        );
    }
}
