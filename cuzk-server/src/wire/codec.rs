//! Messages as bytes and back.
//!
//! Not prost's codec, which calls a message that cannot be read an INTERNAL error. The
//! invariant: a request that is no message of its call is INVALID_ARGUMENT, because it can
//! never be answered.

use std::marker::PhantomData;
use std::sync::Arc;

use prost::Message;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;

/// The codec of both services and of their clients.
#[derive(Debug)]
pub(super) struct MessageCodec<T, U> {
    messages: PhantomData<(T, U)>,
}

impl<T, U> Default for MessageCodec<T, U> {
    fn default() -> Self {
        let messages = PhantomData;
        Self { messages }
    }
}

impl<T, U> Codec for MessageCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = MessageDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        let message = PhantomData;
        MessageDecoder { message }
    }
}

/// Reads messages of one type.
#[derive(Debug)]
pub(super) struct MessageDecoder<U> {
    message: PhantomData<U>,
}

impl<U: Message + Default> Decoder for MessageDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        U::decode(bytes).map(Some).map_err(|error| {
            let problem = format!("{error}; send the message that this call has in its protocol");
            let mut status = Status::invalid_argument(problem);
            // By it a client tells a bad reply from its own bad request.
            status.set_source(Arc::new(error));
            status
        })
    }
}
