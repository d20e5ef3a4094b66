//! The lines of a daemon's log, and the codes of its replies.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use cuzk_core::error::ErrorCode;
use cuzk_server::wire::v1::{self, await_proof_response::Status as JobStatus};
use serde_json::Value;

use crate::fixture::{Daemon, prove, request, verify};

/// The fields of the lines with this message.
fn lines(log: &str, message: &str) -> Vec<Value> {
    let parsed = log.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["fields"].clone()
    });
    parsed
        .filter(|fields| fields["message"] == message)
        .collect()
}

fn ends_with(text: &str, code: ErrorCode) {
    assert!(text.ends_with(&format!(" [{code}]")), "{text}");
}

#[tokio::test]
async fn a_job_is_in_the_log_with_its_name_its_sizes_and_its_times() {
    let mut daemon = Daemon::start("[logging]\nformat = \"json\"\n");
    let mut client = daemon.client().await;
    let proved = prove(&mut client, request("window-post")).await.unwrap();
    verify("window-post", &proved);
    let submitted = client.submit_proof(request("porep")).await.unwrap();
    let job_id = submitted.into_inner().job_id;
    let cancel = v1::CancelProofRequest {
        job_id: job_id.clone(),
    };
    client.cancel_proof(cancel).await.unwrap();
    let wait = v1::AwaitProofRequest {
        job_id: job_id.clone(),
        timeout_ms: 0,
    };
    let end = client.await_proof(wait).await.unwrap().into_inner();
    assert_eq!(end.status(), JobStatus::Cancelled);
    ends_with(&end.error_message, ErrorCode::Ended);

    let mut bad = request("window-post");
    bad.vanilla_proofs[0].truncate(100);
    bad.request_id = "a-bad-one".to_owned();
    client.submit_proof(bad).await.unwrap_err();

    let log = daemon.log();
    let refused = lines(&log, "a job is not accepted");
    assert_eq!(refused.len(), 1, "{log}");
    assert_eq!(refused[0]["reason"], "invalid");
    let id = refused[0]["id"].as_str().unwrap();
    assert!(id.starts_with("a-bad-one"), "{id}");
    assert_eq!(refused[0]["code"], ErrorCode::Request.to_string());
    let accepted = lines(&log, "the job is accepted");
    let ended = lines(&log, "the job has ended");
    assert_eq!((accepted.len(), ended.len()), (2, 2), "{log}");
    for (index, (id, kind, outcome)) in [
        (proved.job_id, "window-post", "proved"),
        (job_id, "porep", "cancelled"),
    ]
    .into_iter()
    .enumerate()
    {
        for fields in [&accepted[index], &ended[index]] {
            assert_eq!(fields["id"], *id);
            assert_eq!(fields["kind"], kind);
            assert_eq!(fields["sector_size"], "2KiB");
        }
        assert!(accepted[index]["request_bytes"].as_u64().unwrap() > 1000);
        assert_eq!(ended[index]["outcome"], outcome);
        assert!(ended[index]["total_s"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(ended[1]["code"], ErrorCode::Ended.to_string());
}

/// A bundled request whose vanilla proof was altered, as a file.
fn altered(folder: &Path) -> std::path::PathBuf {
    let text = std::fs::read_to_string(crate::fixture::data("window-post.json")).unwrap();
    let mut json: Value = serde_json::from_str(&text).unwrap();
    json["vanilla_proofs"][0] = "AAAA".into();
    let path = folder.join("altered.json");
    std::fs::write(&path, json.to_string()).unwrap();
    path
}

#[tokio::test]
async fn replies_have_codes_and_the_command_line_shows_them() {
    let mut daemon = Daemon::start("");
    let mut client = daemon.client().await;
    let nothing = client.prove(v1::ProveRequest { submit: None }).await;
    ends_with(nothing.unwrap_err().message(), ErrorCode::Request);
    let mut bad = request("window-post");
    bad.vanilla_proofs[0].truncate(100);
    let bad = client.submit_proof(bad).await.unwrap_err();
    ends_with(bad.message(), ErrorCode::Request);
    let unknown = v1::PreloadSrsRequest {
        circuit_id: "porep-33g".to_owned(),
    };
    let unknown = client.preload_srs(unknown).await.unwrap_err();
    ends_with(unknown.message(), ErrorCode::Argument);

    // The parameters of this circuit are not in the cache.
    let missing = v1::PreloadSrsRequest {
        circuit_id: "porep-64g".to_owned(),
    };
    let reply = client.preload_srs(missing).await;
    ends_with(reply.unwrap_err().message(), ErrorCode::ParametersMissing);
    let output = daemon.command(&["preload", "porep-64g"]);
    let said = String::from_utf8(output.stderr).unwrap();
    ends_with(said.trim_end(), ErrorCode::ParametersMissing);
    assert_eq!(output.status.code(), Some(2), "{said}");

    let folder = daemon.folder.path().to_owned();
    let (request, out) = (altered(&folder), folder.join("proof"));
    let paths = [request.to_str().unwrap(), out.to_str().unwrap()];
    let output = daemon.command(&["submit", "--request", paths[0], "--out", paths[1]]);
    let said = String::from_utf8(output.stderr).unwrap();
    ends_with(said.trim_end(), ErrorCode::Request);
    assert_eq!(output.status.code(), Some(2), "{said}");
}

/// Those of health checks and port scans, which come all day.
#[tokio::test]
async fn a_connection_without_a_call_is_a_detail_and_one_of_another_protocol_is_news() {
    let mut daemon = Daemon::start("[logging]\nformat = \"json\"\nlevel = \"debug\"\n");
    daemon.client().await;
    let connect = || UnixStream::connect(daemon.socket()).unwrap();
    drop(connect());
    daemon.await_log("no connection: unexpected end of file");
    let mut other = connect();
    other.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    daemon.await_log("no connection: the client does not speak HTTP/2");
    let log = daemon.log();
    let parsed = log
        .lines()
        .map(|line| -> Value { serde_json::from_str(line).unwrap() });
    let mut levels = Vec::new();
    for line in parsed {
        let message = line["fields"]["message"].as_str().unwrap_or_default();
        if message.contains("no connection: ") {
            levels.push(line["level"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(levels, ["DEBUG", "INFO"], "{log}");
}

#[tokio::test]
async fn an_unknown_circuit_is_answered_with_those_that_can_be_evicted() {
    let mut daemon = Daemon::start("");
    let mut client = daemon.client().await;
    let mut evict = async |circuit_id: &str| {
        let circuit_id = circuit_id.to_owned();
        let evicted = client.evict_srs(v1::EvictSrsRequest { circuit_id }).await;
        evicted.map(|reply| reply.into_inner().freed_bytes)
    };
    let unknown = evict("winning").await.unwrap_err();
    assert!(
        unknown.message().contains("; no circuit is loaded ["),
        "{unknown}"
    );
    let output = daemon.command(&["preload", "winning-2k"]);
    assert!(output.status.success(), "{output:?}");
    let unknown = evict("winning").await.unwrap_err();
    let message = unknown.message();
    assert!(
        message.contains("there is no circuit \"winning\"; loaded are: winning-2k ["),
        "{message}"
    );
    ends_with(message, ErrorCode::Argument);
    assert!(evict("winning-2k").await.unwrap() > 0);
}
