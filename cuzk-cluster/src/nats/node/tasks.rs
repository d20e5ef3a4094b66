//! The requests of a worker to the server, and the messages that it gets.
//!
//! Each task reports to the pull policy and decides nothing. The invariant: each request for
//! work has an end that is reported, also if the server never answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::Message;
use async_nats::jetstream::message::{AckKind, Acker, PublishMessage};
use async_nats::{StatusCode, Subject as NatsSubject};
use tokio::runtime::Handle;
use tokio_stream::StreamExt;

use super::{Offered, Shared};
use crate::message::{
    CIRCUITS_MAX, Control, Failure, Message as _, Outcome, Presence, Work, WorkId, WorkResult,
};
use crate::nats::run::Run;
use crate::nats::{ClusterError, Connection, ERROR_PAUSE, TRACE_HEADER, lock, objects, streams};
use crate::subject::Subject;
use crate::worker::{Ability, Delivery, LOOK_PERIOD, PullId, RunEnd};

/// The time between two calls of the policy's tick.
const TICK: Duration = Duration::from_millis(250);

/// The time between two announcements.
const ANNOUNCE_PERIOD: Duration = Duration::from_secs(5);

/// The time after its wait in which the server must answer a request for work. A server that is
/// killed answers none. The request is made again then.
const PULL_MARGIN: Duration = Duration::from_secs(2);

/// The end of a request without a delivery.
enum Empty {
    /// Nothing waits.
    Nothing,
    /// No owner has had such work yet, or the servers elect a leader.
    NoConsumer,
    /// The server refused.
    Failed,
}

/// Lets time pass for the policy, and tells it what the prover can do now.
pub(super) async fn tick(shared: Arc<Shared>) {
    let handle = Handle::current();
    let mut known = None;
    loop {
        let (abilities, capacity) = (shared.prover.abilities(), shared.prover.capacity());
        let is_new = known.as_ref() != Some(&(abilities.clone(), capacity));
        shared.with(&handle, |core, now| {
            if is_new {
                core.set_abilities(&abilities, now);
                core.set_capacity(capacity, now);
            }
            core.tick(now);
        });
        known = Some((abilities, capacity));
        tokio::time::sleep(TICK).await;
    }
}

/// Says now and then what this worker can prove, for ever.
pub(super) async fn announce(shared: Arc<Shared>) {
    loop {
        let (loaded, others): (Vec<_>, Vec<_>) = shared
            .prover
            .abilities()
            .into_iter()
            .take(CIRCUITS_MAX)
            .partition(|ability| ability.is_loaded);
        let circuits = |abilities: Vec<Ability>| {
            let circuits = abilities.into_iter().map(|ability| ability.circuit);
            circuits.collect()
        };
        let presence = Presence {
            node: shared.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            loaded: circuits(loaded),
            others: circuits(others),
        };
        if let Ok(bytes) = presence.encode() {
            let client = &shared.connection.client;
            let subject = streams::presence_subject();
            let _ = client.publish(subject, bytes.into()).await;
        }
        tokio::time::sleep(ANNOUNCE_PERIOD).await;
    }
}

/// Obeys the orders of owners, for ever.
pub(super) async fn take_orders(shared: Arc<Shared>) {
    let handle = Handle::current();
    loop {
        let subject = streams::control_subject();
        if let Ok(mut orders) = shared.connection.client.subscribe(subject).await {
            while let Some(message) = orders.next().await {
                match Control::decode(&message.payload) {
                    Ok(Control::Cancel(ids)) => shared.with(&handle, |core, _| core.cancel(&ids)),
                    Ok(Control::Rest { node, rest_ms }) if node == shared.name => {
                        tracing::warn!(rest_ms, "an owner found wrong proofs of this worker");
                        let rest = Duration::from_millis(rest_ms);
                        shared.with(&handle, |core, now| core.rest(now.saturating_add(rest)));
                    }
                    Ok(Control::Rest { .. }) => {}
                    Err(error) => tracing::debug!(%error, "an order was dropped"),
                }
            }
        }
        tokio::time::sleep(ERROR_PAUSE).await;
    }
}

/// Asks for one partition, and reports the delivery and the end of the request.
pub(super) async fn pull(shared: Arc<Shared>, pull: PullId, subject: Subject, wait: Duration) {
    let handle = Handle::current();
    let longest = wait.saturating_add(PULL_MARGIN);
    let answer = tokio::time::timeout(longest, next_message(&shared, &subject, wait)).await;
    match answer {
        Ok(Ok(message)) => deliver(&shared, pull, &subject, message, &handle).await,
        Ok(Err(Empty::Nothing)) | Err(_) => {}
        Ok(Err(Empty::NoConsumer)) if wait.is_zero() => {}
        Ok(Err(Empty::NoConsumer)) => tokio::time::sleep(LOOK_PERIOD).await,
        Ok(Err(Empty::Failed)) => tokio::time::sleep(ERROR_PAUSE).await,
    }
    shared.with(&handle, |core, now| core.pull_ended(pull, now));
}

/// Sends the request itself. A look at the consumer before would have no answer for as long as
/// servers elect a leader; this request is refused at once then.
async fn next_message(
    shared: &Shared,
    subject: &Subject,
    wait: Duration,
) -> Result<Message, Empty> {
    let Connection { client, context } = &shared.connection;
    let inbox = client.new_inbox();
    let answers = client.subscribe(inbox.clone()).await;
    let mut answers = answers.map_err(|_| Empty::Failed)?;
    let (stream, consumer) = (streams::WORK, subject.consumer());
    let to = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}");
    let request = match wait.as_nanos() {
        0 => r#"{"batch":1,"no_wait":true}"#.to_owned(),
        wait_ns => format!(r#"{{"batch":1,"expires":{wait_ns}}}"#),
    };
    let sent = client.publish_with_reply(to, inbox, request.into()).await;
    sent.map_err(|_| Empty::Failed)?;
    let answer = answers.next().await.ok_or(Empty::Failed)?;
    match answer.status {
        None | Some(StatusCode::OK) => Ok(Message {
            message: answer,
            context: context.clone(),
        }),
        Some(StatusCode::NOT_FOUND | StatusCode::TIMEOUT) => Err(Empty::Nothing),
        Some(StatusCode::NO_RESPONDERS) => Err(Empty::NoConsumer),
        Some(_) => Err(Empty::Failed),
    }
}

/// Tells the policy about a delivery. A message that cannot be used is taken out of the stream.
async fn deliver(
    shared: &Arc<Shared>,
    pull: PullId,
    subject: &Subject,
    message: Message,
    handle: &Handle,
) {
    let work = match Work::decode(&message.payload) {
        Ok(work) if work.subject() == *subject => work,
        Ok(work) => {
            tracing::warn!(id = %work.id(), %subject, "a partition has the wrong subject");
            let _ = message.ack_with(AckKind::Term).await;
            return;
        }
        Err(error) => {
            tracing::warn!(%subject, %error, "a message of the stream was dropped");
            let _ = message.ack_with(AckKind::Term).await;
            return;
        }
    };
    let Some(reply) = message.reply.clone() else {
        return;
    };
    let delivery = Delivery {
        id: work.id(),
        subject: subject.clone(),
        is_excluded: work.excluded.contains(&shared.name),
        lease: Offered {
            work: Arc::new(work),
            reply,
        },
    };
    shared.with(handle, |core, now| core.delivered(pull, delivery, now));
}

/// Gives a lease back to the server.
pub(super) async fn give_back(shared: Arc<Shared>, reply: NatsSubject, delay: Duration) {
    let delay = (!delay.is_zero()).then_some(delay);
    let acker = Acker::new(shared.connection.context.clone(), Some(reply));
    // A lease that is not given back runs out.
    let _ = acker.ack_with(AckKind::Nak(delay)).await;
}

/// Proves a partition on this thread, and lets the result be delivered.
pub(super) fn run(shared: &Arc<Shared>, id: WorkId, work: &Work, run: &Arc<Run>, on: &Handle) {
    let started = Instant::now();
    let result = match prove(shared, work, run, on) {
        Ok(proof) => WorkResult::Proof(proof),
        Err(failure) => WorkResult::Failure(failure),
    };
    let outcome = Outcome {
        id,
        node: shared.name.clone(),
        attempt: work.attempt,
        elapsed_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        result,
    };
    lock(&shared.leaving).unsent += 1;
    let end = match &outcome.result {
        WorkResult::Proof(_) => RunEnd::Proved,
        WorkResult::Failure(_) if run.is_stopped() => RunEnd::Stopped,
        WorkResult::Failure(_) => RunEnd::Failed,
    };
    let trace = work.trace_parent();
    let delivered = deliver_result(Arc::clone(shared), (outcome, trace), Arc::clone(run));
    on.spawn(delivered);
    shared.with(on, |core, now| core.ended(&id, end, now));
}

fn prove(shared: &Shared, work: &Work, run: &Run, on: &Handle) -> Result<Vec<u8>, Failure> {
    let input = objects::receive(&shared.connection.context, work.input.clone());
    let input = on.block_on(input);
    let input = input.map_err(|error| Failure::new(&error.to_string()))?;
    let proved = catch_unwind(AssertUnwindSafe(|| shared.prover.prove(work, &input, run)));
    proved.unwrap_or_else(|_| Err(Failure::new("the prover panicked")))
}

/// Publishes a result until the server has it. Then acknowledges the work, which the server
/// confirms. The result of a partition that was stopped is not needed.
async fn deliver_result(shared: Arc<Shared>, result: (Outcome, String), run: Arc<Run>) {
    let id = result.0.id;
    while !run.is_stopped() {
        match publish_result(&shared, &result, &run).await {
            Ok(()) => break,
            Err(error @ ClusterError::Message(_)) => {
                tracing::error!(%id, %error, "a result cannot be sent");
                break;
            }
            Err(error) => tracing::warn!(%id, %error, "a result was not stored"),
        }
        // Trying again is progress: nobody else is to prove the partition meanwhile.
        run.pass();
        tokio::time::sleep(ERROR_PAUSE).await;
    }
    for reply in shared.reports.end(&id) {
        let acker = Acker::new(shared.connection.context.clone(), Some(reply));
        if let Err(error) = acker.double_ack().await {
            // The work is delivered again, and the owner drops the second result.
            tracing::debug!(%id, %error, "work was not acknowledged");
        }
    }
    lock(&shared.leaving).unsent -= 1;
    shared.left.notify_all();
}

async fn publish_result(
    shared: &Shared,
    (outcome, trace): &(Outcome, String),
    run: &Run,
) -> Result<(), ClusterError> {
    let failed = |problem: &dyn std::fmt::Display| ClusterError::request("store a result", problem);
    let message = PublishMessage::build()
        .payload(outcome.encode()?.into())
        .expected_stream(streams::RESULTS)
        .header(TRACE_HEADER, trace.as_str());
    let context = &shared.connection.context;
    let subject = streams::result_subject(&run.owner);
    let sent = context.send_publish(subject, message).await;
    let stored = sent.map_err(|problem| failed(&problem))?.await;
    stored.map(drop).map_err(|problem| failed(&problem))
}
