//! The jobs of a run, and their right ends.

use std::time::{Duration, Instant};

use cuzk_server::wire::v1::{AwaitProofResponse, SubmitProofRequest, await_proof_response::Status};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use tonic::Code;

use crate::fixture::{connect, prove, request, verify};

const KINDS: [&str; 4] = ["window-post", "porep", "snap-deals", "winning-post"];

/// Longer than a job takes that is tried again and again on a busy machine.
const LONGEST: Duration = Duration::from_secs(7200);

/// The pause after a call that the daemon did not answer.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Clone)]
pub(crate) struct Job {
    kind: &'static str,
    /// No machine can prove it.
    pub(crate) is_false: bool,
    pub(crate) request: SubmitProofRequest,
}

/// Returns jobs of all kinds. Some have false statements.
pub(crate) fn mixed(count: usize, rng: &mut ChaCha8Rng) -> Vec<Job> {
    let job = |number: usize| {
        let kind = KINDS[number % KINDS.len()];
        let is_false = kind == "snap-deals" && number >= KINDS.len() && rng.gen_bool(0.3);
        let mut request = request(kind);
        request.request_id = format!("{kind}-{number}");
        if is_false {
            // The root of other data.
            let mut root = request.comm_d_new.to_vec();
            root[0] ^= 1;
            request.comm_d_new = root.into();
        }
        Job {
            kind,
            is_false,
            request,
        }
    };
    (0..count).map(job).collect()
}

impl Job {
    /// Returns the end of the job. Asks again with a new connection until there is one. A
    /// refusal is the end of a false statement, which the daemon finds before it proves.
    pub(crate) async fn end(&self, address: &str) -> Result<AwaitProofResponse, tonic::Status> {
        let until = Instant::now() + LONGEST;
        loop {
            if let Ok(mut client) = connect(address).await {
                match prove(&mut client, self.request.clone()).await {
                    Ok(response)
                        if matches!(response.status(), Status::Completed | Status::Failed) =>
                    {
                        return Ok(response);
                    }
                    Err(refusal) if refusal.code() == Code::InvalidArgument => {
                        return Err(refusal);
                    }
                    Ok(_) | Err(_) => {}
                }
            }
            let id = &self.request.request_id;
            assert!(Instant::now() < until, "{id} has no end");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Checks that an end is the right one. Returns the proof of a true statement.
    pub(crate) async fn check(
        &self,
        end: Result<AwaitProofResponse, tonic::Status>,
    ) -> Option<Vec<u8>> {
        let id = &self.request.request_id;
        let response = match end {
            Err(refusal) => {
                assert!(self.is_false, "{id}: {refusal}");
                return None;
            }
            Ok(response) => response,
        };
        assert!(
            !self.is_false,
            "{id} is false, and has an end: {response:?}"
        );
        let proof = response.proof.to_vec();
        let kind = self.kind;
        let verified = tokio::task::spawn_blocking(move || verify(kind, &response));
        verified.await.unwrap();
        Some(proof)
    }
}
