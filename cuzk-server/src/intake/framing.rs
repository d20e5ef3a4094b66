//! The messages in the bytes of a call.
//!
//! Not their content. The invariant: no length is taken from bytes that are not there yet.

/// The bytes before each message: a flag, and the length.
pub(super) const PREFIX_BYTES: usize = 5;

/// The place in the bytes of a call.
#[derive(Debug, Default)]
pub(super) struct Framing {
    prefix: [u8; PREFIX_BYTES],
    prefix_len: usize,
    /// Bytes of the message that are still to come.
    rest_bytes: u64,
}

impl Framing {
    /// Returns true if the bytes so far end with a part of a message.
    pub(super) fn is_within_message(&self) -> bool {
        self.rest_bytes > 0 || self.prefix_len > 0
    }

    /// Goes through bytes. `begin` gets the flag and the length of each message that begins
    /// in them.
    ///
    /// # Errors
    ///
    /// The first error of `begin`.
    pub(super) fn feed<E>(
        &mut self,
        mut bytes: &[u8],
        mut begin: impl FnMut(u8, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some((&byte, after)) = bytes.split_first() {
            if self.rest_bytes > 0 {
                let rest = usize::try_from(self.rest_bytes).unwrap_or(usize::MAX);
                let taken = rest.min(bytes.len());
                self.rest_bytes -= taken as u64;
                bytes = bytes.get(taken..).unwrap_or_default();
                continue;
            }
            if let Some(place) = self.prefix.get_mut(self.prefix_len) {
                *place = byte;
            }
            self.prefix_len += 1;
            bytes = after;
            if self.prefix_len == PREFIX_BYTES {
                self.prefix_len = 0;
                self.rest_bytes = message_bytes(self.prefix);
                let [flag, ..] = self.prefix;
                begin(flag, self.rest_bytes)?;
            }
        }
        Ok(())
    }
}

/// Returns the length of the message that a prefix announces.
pub(super) fn message_bytes([_, a, b, c, d]: [u8; PREFIX_BYTES]) -> u64 {
    u32::from_be_bytes([a, b, c, d]).into()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn call(lengths: &[u8]) -> Vec<u8> {
        let message = |&length: &u8| {
            let prefix = [0, 0, 0, 0, length];
            prefix.into_iter().chain(vec![9; length.into()])
        };
        lengths.iter().flat_map(message).collect()
    }

    proptest! {
        #[test]
        fn every_message_is_found_however_the_bytes_are_cut(
            lengths in proptest::collection::vec(0u8..20, 0..6),
            cut in 1usize..30,
        ) {
            let (mut framing, mut found) = (Framing::default(), Vec::new());
            for part in call(&lengths).chunks(cut) {
                let begin = |_, length| { found.push(length); Ok::<_, Infallible>(()) };
                framing.feed(part, begin).unwrap();
            }
            prop_assert!(!framing.is_within_message());
            let expected: Vec<u64> = lengths.iter().map(|&length| length.into()).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut framing = Framing::default();
            framing.feed(&bytes, |_, _| Ok::<_, Infallible>(())).unwrap();
        }
    }
}
