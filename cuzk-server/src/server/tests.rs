//! Calls whose bytes were mutated, through everything that a call meets behind its
//! connection, to an engine without parameters.

use std::collections::BTreeSet;

use bytes::{BufMut, Bytes};
use cuzk_core::ProofKind;
use cuzk_testing::data;
use cuzk_testing::fuzz::Corpus;
use http_body_util::{BodyExt, Full};
use prost::Message;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::{Layer, ServiceExt};

use super::*;
use crate::access::Peer;
use crate::client::read_request;
use crate::wire::v1;

/// All our calls but Drain, after which the engine would refuse the next ones, and Reload,
/// which has no fields. Health's other call has no end.
const CALLS: [&str; 11] = [
    "/cuzk.v1.ProvingEngine/Prove",
    "/cuzk.v1.ProvingEngine/SubmitProof",
    "/cuzk.v1.ProvingEngine/AwaitProof",
    "/cuzk.v1.ProvingEngine/CancelProof",
    "/cuzk.v1.ProvingEngine/PreloadSRS",
    "/cuzk.v1.ProvingEngine/EvictSRS",
    "/cuzk.v1.ProvingEngine/GetStatus",
    "/cuzk.v1.ProvingEngine/GetMetrics",
    "/cuzk.operator.v1.Operator/GetReport",
    "/cuzk.operator.v1.Operator/Resume",
    "/grpc.health.v1.Health/Check",
];

/// Pieces of the protocol: keys of fields, numbers without an end, and names.
const WORDS: [&[u8]; 12] = [
    &[0x10, 5],
    &[0x10, 0x80, 0x80, 0x80, 0x80, 0x10],
    &[0x18, 0x80, 0x10],
    &[0x52, 0],
    &[0x5a, 0],
    &[0xb2, 1, 32],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xff; 10],
    &[0x0b, 0x0c],
    &[0x0a, 0x80],
    b"porep-32g",
    b"{\"SectorNum\":1,\"Phase1Out\":\"e30=\",\"SectorSize\":2048}",
];

/// A daemon whose engine has no parameters, so that nothing is ever proved.
struct Bare {
    daemon: Arc<Daemon>,
    intake: Intake,
    runtime: Runtime,
    _folder: TempDir,
}

impl Bare {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.srs.param_cache = folder.path().to_owned();
        config.jobs.journal = None;
        let (health, _) = tonic_health::server::health_reporter();
        let loaded = config.clone();
        let parts = Parts {
            sources: EngineSources {
                engine: Arc::new(engine(&config).unwrap().0),
                cluster: None,
                readiness: Readiness::default(),
                metrics: Metrics::install().unwrap(),
            },
            access: Access::load(&config.server).unwrap(),
            health,
            replied: watch::Sender::new(false),
            reloader: Reloader::new(&config, move || Ok(loaded.clone())),
            set_log_level: Box::new(|_| Ok(())),
        };
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let daemon = Arc::new(Daemon::new(parts, Duration::ZERO));
        Self {
            intake: Intake::configured(&config.server, daemon.way.clone()),
            daemon,
            runtime: runtime.enable_all().build().unwrap(),
            _folder: folder,
        }
    }

    /// Calls, and returns the code and the message of the end.
    fn call(&self, path: &str, body: Vec<u8>) -> Status {
        let peer = Peer::Unix {
            uid: 1,
            gid: 1,
            pid: None,
        };
        let body = Body::new(Full::new(Bytes::from(body)));
        let request = ::http::Request::post(path)
            .header("content-type", "application/grpc")
            .extension(peer)
            .body(body)
            .unwrap();
        self.runtime.block_on(async {
            let (_, health) = tonic_health::server::health_reporter();
            let services = services(&self.daemon, health).unwrap();
            let services = IntakeLayer::new(self.intake.clone()).layer(services);
            let services = self.daemon.access.layer().layer(services);
            let response = services.oneshot(request).await.unwrap();
            assert_eq!(response.status(), 200);
            if let Some(status) = Status::from_header_map(response.headers()) {
                return status;
            }
            let read = response.into_body().collect().await.unwrap();
            Status::from_header_map(read.trailers().unwrap()).unwrap()
        })
    }
}

/// Returns an input: the number of the call, 0, and a message. With 1 in the place of the 0
/// the rest is the body as it is, without a frame around it.
fn input(call: usize, message: &impl Message) -> Vec<u8> {
    let call = u8::try_from(call).unwrap();
    [&[call, 0], &message.encode_to_vec()[..]].concat()
}

/// Returns the body of a call with one message.
fn framed(message: &[u8]) -> Vec<u8> {
    let mut body = vec![0];
    body.put_u32(u32::try_from(message.len()).unwrap());
    body.extend(message);
    body
}

fn corpus() -> Corpus {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/calls");
    let mut corpus = Corpus::read(folder).with_words(&WORDS);
    for kind in ProofKind::ALL {
        let file = std::fs::read(data(&format!("{kind}.json"))).unwrap();
        let submit = read_request(file).unwrap();
        corpus = corpus.with(input(1, &submit)).with(input(
            0,
            &v1::ProveRequest {
                submit: Some(submit),
            },
        ));
    }
    let job_id = "porep-1000-7/0123456789abcdef".to_owned();
    let wait = v1::AwaitProofRequest {
        job_id: job_id.clone(),
        timeout_ms: 1,
    };
    let preload = v1::PreloadSrsRequest {
        circuit_id: "porep-32g".to_owned(),
    };
    let evict = v1::EvictSrsRequest {
        circuit_id: "wpost-2k".to_owned(),
    };
    let corpus = corpus
        .with(input(2, &wait))
        .with(input(3, &v1::CancelProofRequest { job_id }))
        .with(input(4, &preload))
        .with(input(5, &evict));
    // The calls without fields.
    (6..CALLS.len()).fold(corpus, |corpus, call| corpus.with(input(call, &())))
}

#[test]
fn mutated_calls_are_refused_and_end_nothing() {
    let bare = Bare::start();
    let mut codes = BTreeSet::new();
    let count = corpus().fuzz(3_000, |input| {
        let [call, is_raw, rest @ ..] = input else {
            return;
        };
        let path = CALLS[usize::from(*call) % CALLS.len()];
        let body = if is_raw % 2 == 0 {
            framed(rest)
        } else {
            rest.to_vec()
        };
        let status = bare.call(path, body);
        let is_expected = match status.code() {
            Code::Ok | Code::InvalidArgument | Code::OutOfRange | Code::Unimplemented => true,
            // The parameters are missing, which is no fault of the request.
            Code::FailedPrecondition => status.message().contains("parameters"),
            // The service of health is another crate's, with that crate's decoder.
            Code::NotFound | Code::Internal => path.contains("Health"),
            _ => false,
        };
        assert!(is_expected, "{path}: {status}");
        codes.insert(status.code() as i32);
        assert_eq!(bare.intake.held_bytes(), 0);
    });
    println!("{count} calls");
    for code in [Code::Ok, Code::InvalidArgument, Code::FailedPrecondition] {
        assert!(codes.contains(&(code as i32)), "{code:?} never came");
    }
    assert!(bare.daemon.engine.is_idle());
}
