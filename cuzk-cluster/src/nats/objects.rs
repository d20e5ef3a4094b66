//! Inputs that are too long for a message, in the server's object store.
//!
//! It is a cache: an object that is missing is put there again. The invariants: an object has
//! the digest of its content as its name; bytes with another digest are an error.

use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::object_store::{Config, ObjectStore};
use tokio::io::AsyncReadExt;

use super::streams::Limits;
use super::{ClusterError, Connection};
use crate::message::{INLINE_BYTES_MAX, Input};

const BUCKET: &str = "cuzk-inputs";

/// The longest input. The JSON of all partitions of the largest job has 52 MB.
pub(super) const INPUT_BYTES_MAX: u64 = 256 << 20;

/// The room that a message needs beside its input: header, names and excluded nodes.
const MESSAGE_OVERHEAD: usize = 16 << 10;

/// Reading an object may take so long.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Makes the store if it is missing.
pub(super) async fn ensure(context: &Context, limits: &Limits) -> Result<(), ClusterError> {
    if context.get_object_store(BUCKET).await.is_ok() {
        return Ok(());
    }
    let config = Config {
        bucket: BUCKET.to_owned(),
        description: Some("inputs of partitions, by digest".to_owned()),
        max_age: limits.age_max,
        max_bytes: i64::try_from(limits.object_bytes_max).unwrap_or(i64::MAX),
        num_replicas: limits.replicas,
        ..Config::default()
    };
    let made = context.create_object_store(config).await;
    made.map(drop)
        .map_err(|problem| ClusterError::request("make the store of inputs", problem))
}

async fn store(context: &Context) -> Result<ObjectStore, ClusterError> {
    let store = context.get_object_store(BUCKET).await;
    store.map_err(|problem| ClusterError::request("look at the store of inputs", problem))
}

/// Returns true if an input is too long for a message of this server.
pub(super) fn is_stored(connection: &Connection, bytes_len: u64) -> bool {
    let message_max = connection.client.server_info().max_payload;
    let inline_max = message_max.saturating_sub(MESSAGE_OVERHEAD);
    bytes_len > inline_max.min(INLINE_BYTES_MAX) as u64
}

/// Returns the input as the message has it. A long input is put into the store.
pub(super) async fn send(connection: &Connection, bytes: Vec<u8>) -> Result<Input, ClusterError> {
    if !is_stored(connection, bytes.len() as u64) {
        return Ok(Input::inline(bytes));
    }
    let input = Input::stored(&bytes);
    if input.bytes_len > INPUT_BYTES_MAX {
        let (bytes, bytes_max) = (input.bytes_len, INPUT_BYTES_MAX);
        return Err(ClusterError::InputTooLong { bytes, bytes_max });
    }
    let (store, name) = (store(&connection.context).await?, input.object());
    let known = store.info(&name).await;
    if known.is_ok_and(|info| !info.deleted && info.size as u64 == input.bytes_len) {
        return Ok(input);
    }
    let mut reader = &bytes[..];
    let put = store.put(name.as_str(), &mut reader).await;
    put.map_err(|problem| ClusterError::request("store an input", problem))?;
    Ok(input)
}

/// Returns the bytes of an input.
pub(super) async fn receive(context: &Context, input: Input) -> Result<Vec<u8>, ClusterError> {
    if let Some(bytes) = input.inline {
        return Ok(bytes);
    }
    let (bytes, bytes_max) = (input.bytes_len, INPUT_BYTES_MAX);
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    if bytes > bytes_max {
        return Err(ClusterError::InputTooLong { bytes, bytes_max });
    }
    let name = input.object();
    let read = async {
        let object = store(context).await?.get(&name).await;
        let object = object.map_err(|problem| ClusterError::request("find an input", problem))?;
        // The length is a claim of the message, so no memory is taken for it in advance.
        let mut found = Vec::new();
        let mut limited = object.take(bytes.saturating_add(1));
        let read = limited.read_to_end(&mut found).await;
        read.map_err(|problem| ClusterError::request("read an input", problem))?;
        Ok::<_, ClusterError>(found)
    };
    let found = tokio::time::timeout(READ_TIMEOUT, read).await;
    let found = found.map_err(|problem| ClusterError::request("read an input", problem))??;
    if found.len() != length || !input.is(&found) {
        return Err(ClusterError::WrongObject { object: name });
    }
    Ok(found)
}

/// Removes an input that is not needed any more. If it fails, its age removes it.
pub(super) async fn forget(context: &Context, input: &Input) {
    if let Ok(store) = store(context).await {
        let _ = store.delete(input.object()).await;
    }
}
