//! Where a command runs.
//!
//! The documents name folders of the system, fixed ports and other machines. A test can have none of
//! them. So a command is given the test's folder, its ports and this machine instead.

use std::path::Path;

/// The addresses of gRPC, of HTTP and of a server of a cluster, as the documents write them.
const GRPC: &str = "127.0.0.1:9820";
pub(crate) const HTTP: &str = "127.0.0.1:9821";
const NATS: &str = "127.0.0.1:4222";

/// The daemon of another machine. A call to it goes over TLS.
pub(crate) const FAR: &str = "prover:9820";

/// Replaces the places that the documents name. A process that is to be started has no address
/// yet, and gets any free port.
#[derive(Default)]
pub(crate) struct Place {
    pub(crate) folder: String,
    /// The address of the daemon's gRPC, and that of its HTTP.
    pub(crate) grpc: Option<String>,
    pub(crate) http: Option<String>,
    /// The port of the server of the cluster.
    pub(crate) nats: Option<u16>,
}

impl Place {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.display().to_string(),
            ..Self::default()
        }
    }

    /// Returns a text with the places of the test.
    pub(crate) fn placed(&self, text: &str) -> String {
        let any = "127.0.0.1:0".to_owned();
        let grpc = self.grpc.as_ref().unwrap_or(&any);
        let http = self.http.as_ref().unwrap_or(&any);
        let nats = self.nats.unwrap_or_default();
        text.replace("/run/cuzk", &self.folder)
            .replace("/etc/cuzk", &self.folder)
            .replace("/var/lib/cuzk", &self.folder)
            .replace("0.0.0.0:9820", grpc)
            .replace(FAR, &grpc.replace("127.0.0.1", "localhost"))
            .replace(GRPC, grpc)
            .replace(HTTP, http)
            .replace(NATS, &format!("127.0.0.1:{nats}"))
            .replace("prover-1:4222", &format!("localhost:{nats}"))
            .replace("prover-1", "localhost")
    }
}

#[test]
fn a_command_gets_the_folder_and_the_ports_of_the_test() {
    let mut place = Place::new(Path::new("/tmp/x"));
    let command = "cuzk serve --listen unix:///run/cuzk/cuzk.sock --http 127.0.0.1:9821";
    let expected = "cuzk serve --listen unix:///tmp/x/cuzk.sock --http 127.0.0.1:0";
    assert_eq!(place.placed(command), expected);
    place.grpc = Some("127.0.0.1:7".to_owned());
    place.nats = Some(8);
    let placed = place.placed("prover:9820 tls://prover-1:4222 DNS:prover-1 prover-2");
    assert_eq!(
        placed,
        "localhost:7 tls://localhost:8 DNS:localhost prover-2"
    );
}
