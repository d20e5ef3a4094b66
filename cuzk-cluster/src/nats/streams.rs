//! The streams of a cluster: their names and settings.
//!
//! They are not the truth. The invariants: a stream is used only if its settings are those of
//! this module; inputs at rest are bounded by size and age.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Config, Info, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{Context, ErrorCode};

use super::ClusterError;
use crate::leases::LEASE;
use crate::ledger::StreamId;
use crate::message::SCHEMA;
use crate::name::Name;
use crate::subject::{Subject, WORK_PREFIX};

pub(super) const WORK: &str = "CUZK_WORK";
pub(super) const RESULTS: &str = "CUZK_RESULTS";

/// The subject of orders to all nodes.
pub(super) fn control_subject() -> String {
    format!("cuzk.control.{SCHEMA}")
}

/// The subject of results for an owner.
pub(super) fn result_subject(owner: &Name) -> String {
    format!("cuzk.result.{SCHEMA}.{owner}")
}

/// The subject of signs of life for an owner.
pub(super) fn sign_subject(owner: &Name) -> String {
    format!("cuzk.sign.{SCHEMA}.{owner}")
}

/// The subject of what the nodes say of themselves. No name of an owner has two tokens.
pub(super) fn presence_subject() -> String {
    format!("cuzk.sign.{SCHEMA}.all.presence")
}

/// The time in which a second publication of the same attempt is dropped.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// The limits of what the server keeps.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most bytes of partitions that wait or run.
    pub work_bytes_max: u64,
    /// The most bytes of long inputs.
    pub object_bytes_max: u64,
    /// The longest time for which anything is kept.
    pub age_max: Duration,
    /// The number of servers that keep a copy.
    pub replicas: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            work_bytes_max: 16 << 30,
            object_bytes_max: 16 << 30,
            age_max: Duration::from_secs(24 * 60 * 60),
            replicas: 1,
        }
    }
}

fn config(name: &str, subjects: String, bytes_max: u64, limits: &Limits) -> Config {
    Config {
        name: name.to_owned(),
        subjects: vec![subjects],
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        max_bytes: i64::try_from(bytes_max).unwrap_or(i64::MAX),
        max_age: limits.age_max,
        duplicate_window: DUPLICATE_WINDOW.min(limits.age_max),
        num_replicas: limits.replicas,
        discard: async_nats::jetstream::stream::DiscardPolicy::New,
        ..Config::default()
    }
}

/// Returns the stream of work and the stream of results. Makes those that are missing.
pub(super) async fn ensure(
    context: &Context,
    limits: &Limits,
) -> Result<(Stream, Stream), ClusterError> {
    let work = work_config(limits);
    let results = config(RESULTS, "cuzk.result.>".to_owned(), 1 << 30, limits);
    Ok((
        ensure_one(context, work).await?,
        ensure_one(context, results).await?,
    ))
}

fn work_config(limits: &Limits) -> Config {
    let subjects = format!("{WORK_PREFIX}.>");
    config(WORK, subjects, limits.work_bytes_max, limits)
}

/// Checks the stream of work, if it is there and this machine may look at it. Makes nothing.
pub(super) async fn check_work(context: &Context) -> Result<(), ClusterError> {
    match context.get_stream(WORK).await {
        Ok(stream) => check(
            &work_config(&Limits::default()),
            &stream.cached_info().config,
        ),
        Err(error) => {
            tracing::debug!(%error, "the stream of work cannot be looked at yet");
            Ok(())
        }
    }
}

async fn ensure_one(context: &Context, wanted: Config) -> Result<Stream, ClusterError> {
    match context.get_stream(&wanted.name).await {
        Ok(stream) => {
            check(&wanted, &stream.cached_info().config)?;
            Ok(stream)
        }
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(problem)
                if problem.error_code() == ErrorCode::STREAM_NOT_FOUND =>
            {
                let made = context.create_stream(wanted).await;
                made.map_err(|problem| ClusterError::request("make a stream", problem))
            }
            _ => Err(ClusterError::request("look at a stream", error)),
        },
    }
}

/// Returns an error if a stream has settings that do not work here.
fn check(wanted: &Config, found: &Config) -> Result<(), ClusterError> {
    let differs = |setting, expected: String, found: String| {
        let stream = wanted.name.clone();
        Err(ClusterError::ForeignStream {
            stream,
            setting,
            expected,
            found,
        })
    };
    if found.subjects != wanted.subjects {
        let (expected, found) = (wanted.subjects.join(" "), found.subjects.join(" "));
        return differs("subjects", expected, found);
    }
    if found.retention != wanted.retention {
        let (expected, found) = ("work queue".to_owned(), format!("{:?}", found.retention));
        return differs("retention", expected, found);
    }
    if found.max_age.is_zero() {
        let expected = format!("{} s", wanted.max_age.as_secs());
        return differs("longest age", expected, "none".to_owned());
    }
    if found.max_bytes <= 0 {
        let expected = format!("{} bytes", wanted.max_bytes);
        return differs("largest size", expected, "none".to_owned());
    }
    Ok(())
}

/// Returns the consumer that all workers of a subject share.
pub(super) fn work_consumer(subject: &Subject) -> pull::Config {
    pull::Config {
        durable_name: Some(subject.consumer()),
        filter_subject: subject.to_string(),
        ..consumer()
    }
}

/// Returns the consumer of an owner's results.
pub(super) fn result_consumer(owner: &Name) -> pull::Config {
    pull::Config {
        durable_name: Some(format!("v{SCHEMA}-{owner}")),
        filter_subject: result_subject(owner),
        ..consumer()
    }
}

fn consumer() -> pull::Config {
    pull::Config {
        ack_policy: AckPolicy::Explicit,
        ack_wait: LEASE,
        // The ledger decides when a partition has failed often enough.
        max_deliver: -1,
        // All workers together may have this many partitions.
        max_ack_pending: 100_000,
        max_waiting: 100_000,
        ..pull::Config::default()
    }
}

/// Returns the identity of a stream.
pub(super) fn identity(info: &Info) -> StreamId {
    StreamId(info.created.unix_timestamp_nanos())
}
