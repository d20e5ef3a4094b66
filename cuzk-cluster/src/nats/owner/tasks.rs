//! The requests of the owner to the server, and the messages that it gets.
//!
//! Each task reports to the ledger and decides nothing. The invariant: a task that fails
//! reports it, or is repeated after a pause, or nothing depends on it.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Message as StreamMessage;
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use async_nats::jetstream::message::PublishMessage;
use tokio_stream::StreamExt;

use super::shared::{Shared, State};
use crate::ledger::{Position, Receipt, Survey};
use crate::message::{Control, Message, Outcome, Presence, Sign, Work, WorkId};
use crate::name::Name;
use crate::nats::{ClusterError, ERROR_PAUSE, TRACE_HEADER, lock, objects, streams};
use crate::runtime;
use crate::subject::Subject;

/// The time between two calls of the ledger's tick.
const TICK: Duration = Duration::from_millis(250);

/// The time between two looks at the state of the stream.
const SURVEY_PERIOD: Duration = Duration::from_secs(5);

/// The time for which a request for results waits at the server.
const RESULT_WAIT: Duration = Duration::from_secs(10);

/// The server says so often that such a request still waits. After two of these times the
/// request is made again: the server that had it may be gone.
const RESULT_HEARTBEAT: Duration = Duration::from_secs(2);

/// The time for a request for results to begin. Servers without a leader do not answer, and the
/// request is made again then.
const RESULT_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause before results are asked for again.
const RESULT_PAUSE: Duration = Duration::from_millis(250);

/// Connects, makes what is missing on the server, and tells the ledger that it can publish.
pub(super) async fn establish(shared: &Shared) -> Result<(), ClusterError> {
    shared.link.connect(shared.name.as_str()).await?;
    let context = &shared.link.connection()?.context;
    objects::ensure(context, &shared.limits).await?;
    let (work, _) = streams::ensure(context, &shared.limits).await?;
    let stream = streams::identity(work.cached_info());
    shared.with(|state, now| {
        state.stream = Some(stream);
        state.connected(true, now);
    });
    Ok(())
}

/// Keeps the connection, and tells the ledger when it is lost and when it is there again.
pub(super) async fn keep_connection(shared: Arc<Shared>) {
    let mut changes = shared.link.changes();
    loop {
        while let Err(error) = establish(&shared).await {
            shared.link.failed(&error);
            tokio::time::sleep(ERROR_PAUSE).await;
        }
        shared.link.worked();
        loop {
            if !changes.borrow_and_update().is_connected {
                shared.with(|state, now| state.connected(false, now));
                let addresses = shared.link.addresses().join(", ");
                shared.link.failed(&ClusterError::Lost { addresses });
            }
            if changes.changed().await.is_err() {
                return;
            }
            if changes.borrow().is_connected {
                break;
            }
        }
    }
}

/// Lets time pass for the ledger, and looks at the stream now and then.
pub(super) async fn tick(shared: Arc<Shared>) {
    let mut next_survey = Duration::ZERO;
    loop {
        tokio::time::sleep(TICK).await;
        shared.with(|state, now| state.ledger.tick(now));
        if shared.now() >= next_survey {
            if let Err(error) = survey(&shared).await {
                tracing::debug!(%error, "the stream of the cluster cannot be looked at");
            }
            next_survey = shared.now() + SURVEY_PERIOD;
        }
    }
}

async fn survey(shared: &Shared) -> Result<(), ClusterError> {
    let asked_at = shared.now();
    // Makes the stream anew if somebody has deleted it.
    let context = &shared.link.connection()?.context;
    let (work, _) = streams::ensure(context, &shared.limits).await?;
    let info = work.cached_info();
    let stream = streams::identity(info);
    let last_sequence = info.state.last_sequence;
    let subjects = shared.with(|state, _| {
        state.stream = Some(stream);
        let subjects = state.ledger.subjects();
        subjects.cloned().collect::<Vec<_>>()
    });
    let mut floors = Vec::new();
    for subject in subjects {
        match work.consumer_info(subject.consumer()).await {
            Ok(info) => floors.push((subject, info.ack_floor.stream_sequence)),
            Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => {
                let made = work.create_consumer(streams::work_consumer(&subject)).await;
                made.map_err(|problem| ClusterError::request("make a consumer", problem))?;
            }
            Err(error) => return Err(ClusterError::request("look at a consumer", error)),
        }
    }
    let survey = Survey {
        asked_at,
        stream,
        last_sequence,
        floors,
    };
    shared.with(|state, now| state.ledger.survey(&survey, now));
    Ok(())
}

/// Publishes an attempt of a partition, and reports the end of it.
pub(super) async fn publish(shared: Arc<Shared>, id: WorkId, attempt: u32, excluded: Vec<Name>) {
    let work = lock(&shared.state).works.get(&id).cloned();
    let Some(work) = work else { return };
    let published = try_publish(&shared, &work, (id, attempt), excluded).await;
    match &published {
        Ok(_) => shared.link.worked(),
        // It has ended, and the ledger hears of it.
        Err(ClusterError::NoInput) => {}
        Err(error) if error.is_of_input() => {
            tracing::error!(%id, %error, "a partition cannot be shared; it is proved here");
        }
        Err(error) => shared.link.failed(error),
    }
    shared.with(|state, now| match published {
        Ok(position) => state.ledger.published(&id, attempt, position, now),
        Err(error) => {
            if error.is_of_input() {
                state.ledger.unpublishable(&id, now);
            }
            state.ledger.publish_failed(&id, attempt, now);
        }
    });
}

async fn try_publish(
    shared: &Arc<Shared>,
    work: &Work,
    (id, attempt): (WorkId, u32),
    excluded: Vec<Name>,
) -> Result<Position, ClusterError> {
    let stream = lock(&shared.state).stream;
    let missing = || ClusterError::request("publish", "there is no stream yet");
    let stream = stream.ok_or_else(missing)?;
    let connection = shared.link.connection()?;
    let of_task = Arc::clone(shared);
    let name = "cuzk-input";
    let input = runtime::apart(name, move || of_task.home.input(&id)).await;
    let input = input.map_err(|source| ClusterError::Thread { name, source })?;
    let input = input.ok_or(ClusterError::NoInput)?;
    if !work.input.is(&input) {
        return Err(ClusterError::OtherInput);
    }
    let (subject, trace) = (work.subject(), work.trace_parent());
    let work = Work {
        attempt,
        excluded,
        input: objects::send(connection, input).await?,
        ..work.clone()
    };
    let number = blake3::Hash::from_bytes(id.0).to_hex();
    let message = PublishMessage::build()
        .payload(work.encode()?.into())
        .message_id(format!("{number}-{attempt}"))
        .header(TRACE_HEADER, trace)
        .expected_stream(streams::WORK);
    let failed = |problem: &dyn std::fmt::Display| ClusterError::request("publish", problem);
    let context = &connection.context;
    let sent = context.send_publish(subject.to_string(), message).await;
    let stored = sent.map_err(|problem| failed(&problem))?.await;
    let sequence = stored.map_err(|problem| failed(&problem))?.sequence;
    Ok(Position { stream, sequence })
}

/// Makes the consumers of subjects, so that the first partition need not wait for them.
pub(super) async fn prepare(shared: Arc<Shared>, subjects: Vec<Subject>) {
    for subject in subjects {
        // Without a connection, the survey makes them later.
        let Ok(connection) = shared.link.connection() else {
            return;
        };
        let config = streams::work_consumer(&subject);
        let context = &connection.context;
        let made = context
            .create_consumer_on_stream(config, streams::WORK)
            .await;
        if let Err(error) = made {
            tracing::warn!(%subject, %error, "a consumer was not made");
        }
    }
}

/// Removes a message from the stream. Nothing depends on it.
pub(super) async fn withdraw(shared: Arc<Shared>, position: Position) {
    let is_there = lock(&shared.state).stream == Some(position.stream);
    if let (true, Ok(connection)) = (is_there, shared.link.connection()) {
        let context = &connection.context;
        if let Ok(stream) = context.get_stream_no_info(streams::WORK).await {
            let _ = stream.delete_message(position.sequence).await;
        }
    }
}

/// Sends an order to all nodes. Nothing depends on it.
pub(super) async fn order(shared: Arc<Shared>, control: Control) {
    if let (Ok(bytes), Ok(connection)) = (control.encode(), shared.link.connection()) {
        let _ = connection
            .client
            .publish(streams::control_subject(), bytes.into())
            .await;
    }
}

/// Removes the object of an input that is not needed any more.
pub(super) async fn forget_input(shared: Arc<Shared>, work: Arc<Work>) {
    let Ok(connection) = shared.link.connection() else {
        return;
    };
    if objects::is_stored(connection, work.input.bytes_len) {
        objects::forget(&connection.context, &work.input).await;
    }
}

/// Takes the results for this owner, for ever.
pub(super) async fn take_results(shared: Arc<Shared>) {
    loop {
        if let Err(error) = take_results_once(&shared).await {
            tracing::debug!(%error, "the results of the cluster cannot be taken");
        }
        tokio::time::sleep(RESULT_PAUSE).await;
    }
}

async fn take_results_once(shared: &Shared) -> Result<(), ClusterError> {
    let failed =
        |problem: &dyn std::fmt::Display| ClusterError::request("take the results", problem);
    let config = streams::result_consumer(&shared.name);
    let context = &shared.link.connection()?.context;
    let made = context.create_consumer_on_stream(config, streams::RESULTS);
    let made = tokio::time::timeout(RESULT_TIMEOUT, made).await;
    let consumer = made.map_err(|_| failed(&"the server did not answer"))?;
    let consumer = consumer.map_err(|problem| failed(&problem))?;
    let waiting = consumer.stream().expires(RESULT_WAIT);
    let messages = waiting.heartbeat(RESULT_HEARTBEAT).messages().await;
    let mut messages = messages.map_err(|problem| failed(&problem))?;
    while let Some(message) = messages.next().await {
        take_result(shared, message.map_err(|problem| failed(&problem))?).await;
    }
    Ok(())
}

async fn take_result(shared: &Shared, message: StreamMessage) {
    match Outcome::decode(&message.payload) {
        Ok(outcome) => shared.with(|state, now| {
            let receipt = Receipt(state.next_receipt);
            state.next_receipt += 1;
            state.receipts.insert(receipt, message);
            state.ledger.result(outcome, receipt, now);
        }),
        Err(error) => {
            tracing::warn!(%error, "a result was dropped");
            let _ = message.ack().await;
        }
    }
}

/// Takes the signs of life for this owner, for ever.
pub(super) async fn take_signs(shared: Arc<Shared>) {
    let subject = streams::sign_subject(&shared.name);
    take(&shared, subject, |sign: Sign, state, now| {
        state.ledger.signed(&sign.node, &sign.running, now);
    })
    .await;
}

/// Takes what the nodes say of themselves, for ever.
pub(super) async fn take_presences(shared: Arc<Shared>) {
    let subject = streams::presence_subject();
    take(&shared, subject, |presence: Presence, state, now| {
        state.ledger.nodes.announced(presence, now);
    })
    .await;
}

/// Takes messages that may be lost, for ever.
async fn take<M: Message>(
    shared: &Shared,
    subject: String,
    note: impl Fn(M, &mut State, Duration),
) {
    loop {
        let connection = shared.link.connection().ok();
        let client = connection.map(|connection| &connection.client);
        if let Some(client) = client
            && let Ok(mut messages) = client.subscribe(subject.clone()).await
        {
            while let Some(message) = messages.next().await {
                match M::decode(&message.payload) {
                    Ok(message) => shared.with(|state, now| note(message, state, now)),
                    Err(error) => tracing::debug!(%error, subject, "a message was dropped"),
                }
            }
        }
        tokio::time::sleep(ERROR_PAUSE).await;
    }
}
