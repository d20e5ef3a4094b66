//! The files that the text of a document describes and that its commands read.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::Value;

use crate::blocks::Block;
use crate::place::Place;
use crate::{blocks, repository};

/// The token that a client has. It is the variable `TOKEN` of the commands.
pub(crate) const TOKEN: &str = "0123456789abcdef";

/// The listeners of a daemon. Its configuration in the documents has the section.
const LISTEN: &str = "[server]\nlisten = [\"unix:///run/cuzk/cuzk.sock\", \
                      \"tcp://127.0.0.1:9820\"]\nhttp = \"127.0.0.1:9821\"\n";

/// A document, a file that its commands name, and the text of the file.
type Described = (&'static str, &'static str, fn() -> String);

const DESCRIBED: [Described; 7] = [
    ("docs/aggregation.md", "list.json", list_of_sectors),
    ("docs/cluster.md", "daemon.toml", daemon_of_a_cluster),
    ("docs/cluster.md", "worker.toml", worker_of_a_cluster),
    ("docs/daemon.md", "cuzk.toml", || LISTEN.to_owned()),
    ("docs/daemon.md", "far.toml", protected),
    ("docs/plan.md", "this-machine.toml", machine),
    ("docs/troubleshooting.md", "curio.toml", || {
        block("docs/daemon.md", "toml", "[Cuzk]").text
    }),
];

/// Returns the block of a document that has a text.
pub(crate) fn block(document: &str, language: &str, has: &str) -> Block {
    let mut blocks = blocks(language).into_iter();
    let found = blocks.find(|block| block.document == document && block.text.contains(has));
    found.unwrap_or_else(|| panic!("{document} has no block of {language} with {has}"))
}

/// Writes the files that a command of a document names, unless they are there.
pub(crate) fn write(document: &str, command: &str, folder: &Path, place: &Place) {
    for (of, name, text) in DESCRIBED {
        let path = folder.join(name);
        if of == document && command.contains(name) && !path.exists() {
            std::fs::write(path, place.placed(&text())).unwrap();
        }
    }
}

/// Returns the example of a list with the values of the bundled sector. The document has numbers
/// of a larger one, and a word in place of bytes.
fn list_of_sectors() -> String {
    let example = block("docs/aggregation.md", "json", "\"sectors\"");
    let mut list: Value = serde_json::from_str(&example.text).unwrap();
    let real = cuzk_testing::aggregate_request(1).to_json();
    let real: Value = serde_json::from_slice(&real).unwrap();
    fill(&mut list, &real);
    list.to_string()
}

/// Gives each key of the example the value of the same key. Neither has a key that the other lacks.
fn fill(example: &mut Value, real: &Value) {
    match (example, real) {
        (Value::Object(example), Value::Object(real)) => {
            assert_eq!(example.len(), real.len(), "{example:?} {real:?}");
            let pairs = example.iter_mut();
            pairs.for_each(|(key, example)| fill(example, &real[key]));
        }
        (Value::Array(example), Value::Array(real)) => {
            assert_eq!(example.len(), real.len());
            let pairs = example.iter_mut().zip(real);
            pairs.for_each(|(example, real)| fill(example, real));
        }
        (example, real) => {
            assert_eq!(example.is_string(), real.is_string(), "{example} {real}");
            *example = real.clone();
        }
    }
}

fn daemon_of_a_cluster() -> String {
    let section = block(
        "docs/cluster.md",
        "toml",
        "servers = [\"tls://prover-1:4222\"]",
    );
    format!("{LISTEN}{}", section.text)
}

fn worker_of_a_cluster() -> String {
    let section = block(
        "docs/cluster.md",
        "toml",
        "servers = [\"tls://prover-1:4222\"]",
    );
    assert!(section.text.contains("\"daemon.nkey\""));
    section.text.replace("daemon.nkey", "worker.nkey")
}

/// Returns the configuration of a daemon that other machines call.
fn protected() -> String {
    let section = block("docs/daemon.md", "toml", "[server]");
    format!("{}http = \"127.0.0.1:9821\"\n", section.text)
}

/// Returns a shipped machine, in place of the one that `cuzk plan calibrate` measures.
fn machine() -> String {
    let shipped = repository().join("configs/machines/server-64c-512gib-1gpu.toml");
    std::fs::read_to_string(shipped).unwrap()
}

/// Writes the files of [`protected`], and those of its clients.
pub(crate) fn write_certificates(folder: &Path) {
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    let sides = [
        ("server-ca.pem", "server.pem", "server.key"),
        ("clients-ca.pem", "client.pem", "client.key"),
    ];
    for (authority_file, certificate_file, key_file) in sides {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        write(authority_file, authority.self_signed(&key).unwrap().pem());
        let issuer = Issuer::new(authority, key);
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        write(certificate_file, certificate.pem());
        write(key_file, key.serialize_pem());
    }
    write("tokens", format!("{TOKEN}\n"));
}
