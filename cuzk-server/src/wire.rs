//! The protocols, as types, clients and servers.
//!
//! Not their meaning, which is in [`crate::request`] and the services. All but the codec is
//! generated from the files in `proto/`, which document every field.

mod codec;

/// The interface for clients: `cuzk.v1`.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod v1 {
    tonic::include_proto!("cuzk.v1");
}

/// The interface for operators: `cuzk.operator.v1`.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod operator {
    tonic::include_proto!("cuzk.operator.v1");
}

/// The descriptors of both protocols, for reflection: an encoded `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The name of the interface for clients, as the health service knows it.
pub const SERVICE: &str = v1::proving_engine_server::SERVICE_NAME;

/// The largest message, in bytes: what clients allow.
pub const MESSAGE_BYTES_MAX: usize = 256 << 20;
