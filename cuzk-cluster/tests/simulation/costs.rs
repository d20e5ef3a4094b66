//! The times of a run: of a partition, and of what is done for one at the daemon and on its
//! network.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// The mean time of a partition on a worker, for all circuits; none for that of its circuit.
    pub(crate) proving: Option<Duration>,
    /// The cores of the daemon; none if nothing waits for one.
    pub(crate) cores: Option<usize>,
    /// The time of a core to make, send and store an input.
    pub(crate) sending: Duration,
    /// The time of a core to verify a proof.
    pub(crate) verifying: Duration,
    /// The time in which an input passes the network of the server.
    pub(crate) transfer: Duration,
}

impl Costs {
    /// Only proving takes time.
    pub(crate) const FREE: Self = Self {
        proving: None,
        cores: None,
        sending: Duration::ZERO,
        verifying: Duration::from_millis(5),
        transfer: Duration::ZERO,
    };
}

/// Things that do one piece of work at a time each, such as cores. Work waits for the first that
/// is free.
#[derive(Clone, Debug)]
pub(crate) struct Resource(Option<Vec<Duration>>);

impl Resource {
    /// Returns so many things; none for as many as there is work.
    pub(crate) fn new(count: Option<usize>) -> Self {
        Self(count.map(|count| vec![Duration::ZERO; count]))
    }

    /// Begins work that takes so long. Returns the time from now to its end.
    pub(crate) fn take(&mut self, takes: Duration, now: Duration) -> Duration {
        let things = self.0.iter_mut().flatten();
        let Some(free) = things.min() else {
            return takes;
        };
        *free = now.max(*free) + takes;
        *free - now
    }
}
