//! The requests of the owner to the server, and the messages that it gets.
//!
//! Each task reports to the ledger and decides nothing. The invariant: a task that fails
//! reports it, or is repeated after a pause, or nothing depends on it.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Event;
use async_nats::jetstream::Message;
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use async_nats::jetstream::message::PublishMessage;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_stream::StreamExt;

use super::{Offered, Shared};
use crate::ledger::{Position, Receipt, Survey};
use crate::message::{Control, Message as _, Outcome, Sign, WorkId};
use crate::name::Name;
use crate::nats::{ClusterError, ERROR_PAUSE, lock, objects, streams};

/// The time between two calls of the ledger's tick.
const TICK: Duration = Duration::from_millis(250);

/// The time between two looks at the state of the stream.
const SURVEY_PERIOD: Duration = Duration::from_secs(5);

/// Makes what is missing on the server, and tells the ledger that it can publish.
pub(super) async fn ensure(shared: &Shared) -> Result<(), ClusterError> {
    let context = &shared.connection.context;
    objects::ensure(context, &shared.limits).await?;
    let (work, _) = streams::ensure(context, &shared.limits).await?;
    let stream = streams::identity(work.cached_info());
    shared.with(|state, now| {
        state.stream = Some(stream);
        state.ledger.connected(true, now);
    });
    Ok(())
}

/// Tells the ledger when the connection is lost, and when it is there again.
pub(super) async fn watch_connection(shared: Arc<Shared>, mut events: UnboundedReceiver<Event>) {
    while let Some(event) = events.recv().await {
        match event {
            Event::Connected => {
                while let Err(error) = ensure(&shared).await {
                    tracing::warn!(%error, "the streams of the cluster cannot be used");
                    tokio::time::sleep(ERROR_PAUSE).await;
                }
            }
            Event::Disconnected | Event::Closed => {
                tracing::warn!("the server of the cluster is gone; urgent work is proved here");
                shared.with(|state, now| state.ledger.connected(false, now));
            }
            _ => {}
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
    let (work, _) = streams::ensure(&shared.connection.context, &shared.limits).await?;
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
    let offered = lock(&shared.state).works.get(&id).cloned();
    let Some(offered) = offered else { return };
    let published = try_publish(&shared, &offered, id, attempt, excluded).await;
    shared.with(|state, now| match published {
        Ok(position) => state.ledger.published(&id, attempt, position, now),
        Err(error) => {
            tracing::warn!(%id, %error, "a partition was not published");
            state.ledger.publish_failed(&id, attempt, now);
        }
    });
}

async fn try_publish(
    shared: &Shared,
    offered: &Offered,
    id: WorkId,
    attempt: u32,
    excluded: Vec<Name>,
) -> Result<Position, ClusterError> {
    let stream = lock(&shared.state).stream;
    let missing = || ClusterError::request("publish", "there is no stream yet");
    let stream = stream.ok_or_else(missing)?;
    let bytes = shared.message(offered, attempt, excluded).await?;
    let number = blake3::Hash::from_bytes(id.0).to_hex();
    let message = PublishMessage::build()
        .payload(bytes.into())
        .message_id(format!("{number}-{attempt}"))
        .expected_stream(streams::WORK);
    let subject = offered.work.subject();
    let failed = |problem: &dyn std::fmt::Display| ClusterError::request("publish", problem);
    let context = &shared.connection.context;
    let sent = context.send_publish(subject.to_string(), message).await;
    let stored = sent.map_err(|problem| failed(&problem))?.await;
    let sequence = stored.map_err(|problem| failed(&problem))?.sequence;
    Ok(Position { stream, sequence })
}

/// Makes the consumers of subjects, so that the first partition need not wait for them.
pub(super) async fn prepare(shared: Arc<Shared>, subjects: Vec<crate::subject::Subject>) {
    for subject in subjects {
        let config = streams::work_consumer(&subject);
        let context = &shared.connection.context;
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
    if lock(&shared.state).stream == Some(position.stream) {
        let context = &shared.connection.context;
        if let Ok(stream) = context.get_stream_no_info(streams::WORK).await {
            let _ = stream.delete_message(position.sequence).await;
        }
    }
}

/// Sends an order to all nodes. Nothing depends on it.
pub(super) async fn order(shared: Arc<Shared>, control: Control) {
    if let Ok(bytes) = control.encode() {
        let client = &shared.connection.client;
        let _ = client
            .publish(streams::control_subject(), bytes.into())
            .await;
    }
}

/// Removes the object of an input that is not needed any more.
pub(super) async fn forget_input(shared: Arc<Shared>, offered: Arc<Offered>) {
    let connection = &shared.connection;
    if objects::is_stored(connection, &offered.input) {
        objects::forget(&connection.context, &offered.work.input).await;
    }
}

/// Takes the results for this owner, for ever.
pub(super) async fn take_results(shared: Arc<Shared>) {
    loop {
        if let Err(error) = take_results_once(&shared).await {
            tracing::warn!(%error, "the results of the cluster cannot be taken");
        }
        tokio::time::sleep(ERROR_PAUSE).await;
    }
}

async fn take_results_once(shared: &Shared) -> Result<(), ClusterError> {
    let failed =
        |problem: &dyn std::fmt::Display| ClusterError::request("take the results", problem);
    let config = streams::result_consumer(&shared.name);
    let context = &shared.connection.context;
    let consumer = context
        .create_consumer_on_stream(config, streams::RESULTS)
        .await;
    let consumer = consumer.map_err(|problem| failed(&problem))?;
    let messages = consumer.messages().await;
    let mut messages = messages.map_err(|problem| failed(&problem))?;
    while let Some(message) = messages.next().await {
        take_result(shared, message.map_err(|problem| failed(&problem))?).await;
    }
    Ok(())
}

async fn take_result(shared: &Shared, message: Message) {
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
    loop {
        let subject = streams::sign_subject(&shared.name);
        if let Ok(mut signs) = shared.connection.client.subscribe(subject).await {
            while let Some(message) = signs.next().await {
                match Sign::decode(&message.payload) {
                    Ok(Sign { node, running }) => {
                        shared.with(|state, now| state.ledger.signed(&node, &running, now));
                    }
                    Err(error) => tracing::debug!(%error, "a sign of life was dropped"),
                }
            }
        }
        tokio::time::sleep(ERROR_PAUSE).await;
    }
}
