//! The pull policy of a worker: which work it asks for, and when.
//!
//! It is not the prover, and not the transport. A caller tells it what happened, and carries
//! out its [`Command`]s in order. The invariants:
//!
//! * A worker asks only for circuits that it can prove, and only while it has room.
//! * It asks for the most urgent work first. Urgent work has room of its own, so a WindowPoSt
//!   never waits behind a PoRep.
//! * It lets requests wait at the server only for circuits that it has loaded. For others it
//!   only asks for work that is waiting. So a cold worker takes what warm ones leave.
//! * A delivery that it has no room for goes back at once.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use cuzk_scheduler::priority::Priority;

use crate::message::WorkId;
use crate::subject::{Circuit, Subject, is_urgent};

/// The time for which a request waits at the server.
pub const WAIT: Duration = Duration::from_secs(5);

/// The time between two looks at work for which no request waits. A partition takes seconds to
/// minutes, so a cold worker is idle for less than 1 % of its time because of it.
pub const LOOK_PERIOD: Duration = Duration::from_millis(500);

/// The time before a partition that excludes this worker can be delivered again.
pub const EXCLUDED_DELAY: Duration = Duration::from_secs(5);

/// A circuit that a worker can prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ability {
    /// The circuit.
    pub circuit: Circuit,
    /// True if its parameters are in memory.
    pub is_loaded: bool,
}

/// The number of partitions that a worker can have at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Partitions of any priority.
    pub common: usize,
    /// Urgent partitions beside them.
    pub urgent: usize,
}

/// A partition that the server delivered. `L` is what the transport acknowledges.
#[derive(Clone, Debug)]
pub struct Delivery<L> {
    /// The partition.
    pub id: WorkId,
    /// Its urgency.
    pub priority: Priority,
    /// True if this worker is among the nodes that failed to prove it.
    pub is_excluded: bool,
    /// The delivery's lease.
    pub lease: L,
}

/// The number of a request for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PullId(u64);

/// An action that the caller carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command<L> {
    /// Ask for one partition. Report each delivery, then the end of the request.
    Pull {
        /// The number of the request.
        pull: PullId,
        /// The subject.
        subject: Subject,
        /// The time that the request waits at the server. Zero: it does not wait.
        wait: Duration,
    },
    /// Prove a partition.
    Start {
        /// The partition.
        id: WorkId,
        /// Its lease.
        lease: L,
    },
    /// Keep one more lease of a partition that runs.
    Join {
        /// The partition.
        id: WorkId,
        /// The other lease.
        lease: L,
    },
    /// Give a lease back, so that the server can deliver the partition after `delay`.
    Return {
        /// The lease.
        lease: L,
        /// The delay.
        delay: Duration,
    },
    /// Stop a partition. Its result is not needed.
    Stop {
        /// The partition.
        id: WorkId,
    },
    /// The worker is drained: nothing runs and nothing is asked for.
    Leave,
}

/// The pull policy of one worker.
#[derive(Debug)]
pub struct Worker<L> {
    /// The subjects that it can prove, in the order in which it asks.
    wishes: Vec<Wish>,
    capacity: Capacity,
    /// The running partitions. True: urgent.
    runs: HashMap<WorkId, bool>,
    urgent_runs: usize,
    /// Requests that wait at the server.
    waiting: BTreeMap<PullId, Subject>,
    waiting_subjects: BTreeSet<Subject>,
    /// The request of a look at waiting work, which goes through all wishes.
    look: Option<Look>,
    next_look: Duration,
    next_pull: u64,
    state: State,
    commands: VecDeque<Command<L>>,
}

#[derive(Clone, Debug)]
struct Wish {
    subject: Subject,
    is_loaded: bool,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    pull: PullId,
    /// The wish that it asks for.
    place: usize,
    found: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Resting(Duration),
    Draining,
    Left,
}

impl<L> Default for Worker<L> {
    fn default() -> Self {
        Self {
            wishes: Vec::new(),
            capacity: Capacity::default(),
            runs: HashMap::new(),
            urgent_runs: 0,
            waiting: BTreeMap::new(),
            waiting_subjects: BTreeSet::new(),
            look: None,
            next_look: Duration::ZERO,
            next_pull: 0,
            state: State::Open,
            commands: VecDeque::new(),
        }
    }
}

impl<L> Worker<L> {
    /// Returns the next action.
    pub fn next_command(&mut self) -> Option<Command<L>> {
        self.commands.pop_front()
    }

    /// Sets what the worker can prove.
    pub fn set_abilities(&mut self, abilities: &[Ability], now: Duration) {
        let wish = |priority: Priority, ability: &Ability| Wish {
            subject: Subject {
                circuit: ability.circuit.clone(),
                priority,
            },
            is_loaded: ability.is_loaded,
        };
        let all = Priority::ALL.into_iter();
        self.wishes = all
            .flat_map(|priority| abilities.iter().map(move |ability| wish(priority, ability)))
            .collect();
        self.wishes
            .sort_by_key(|wish| (wish.subject.priority, !wish.is_loaded));
        self.begin_look(now);
    }

    /// Sets how many partitions the worker can have at a time.
    pub fn set_capacity(&mut self, capacity: Capacity, now: Duration) {
        self.capacity = capacity;
        self.begin_look(now);
    }

    /// Notes a delivery to a request.
    pub fn delivered(&mut self, pull: PullId, delivery: Delivery<L>) {
        if let Some(look) = &mut self.look
            && look.pull == pull
        {
            look.found = true;
        }
        let Delivery {
            id,
            priority,
            is_excluded,
            lease,
        } = delivery;
        let command = if self.runs.contains_key(&id) {
            Command::Join { id, lease }
        } else if is_excluded {
            let delay = EXCLUDED_DELAY;
            Command::Return { lease, delay }
        } else if self.state == State::Open && self.has_room(priority) {
            self.runs.insert(id, is_urgent(priority));
            self.urgent_runs += usize::from(is_urgent(priority));
            Command::Start { id, lease }
        } else {
            let delay = Duration::ZERO;
            Command::Return { lease, delay }
        };
        self.commands.push_back(command);
    }

    /// Notes that a request is over: it was answered, it expired, or the server is gone.
    pub fn pull_ended(&mut self, pull: PullId, now: Duration) {
        if let Some(subject) = self.waiting.remove(&pull) {
            self.waiting_subjects.remove(&subject);
            self.begin_look(now);
            return;
        }
        if let Some(look) = self.look.take_if(|look| look.pull == pull) {
            let next = if look.found { 0 } else { look.place + 1 };
            self.look_from(next, now);
        }
    }

    /// Notes that a partition runs no more.
    pub fn ended(&mut self, id: &WorkId, now: Duration) {
        if let Some(was_urgent) = self.runs.remove(id) {
            self.urgent_runs -= usize::from(was_urgent);
        }
        self.begin_look(now);
        self.leave_if_done();
    }

    /// Stops the partitions that run here. Report the end of each as of any other.
    pub fn cancel(&mut self, ids: &[WorkId]) {
        for id in ids.iter().filter(|id| self.runs.contains_key(id)) {
            self.commands.push_back(Command::Stop { id: *id });
        }
    }

    /// Asks for nothing until `until`.
    pub fn rest(&mut self, until: Duration) {
        if matches!(self.state, State::Open | State::Resting(_)) {
            self.state = State::Resting(until);
        }
    }

    /// Finishes what runs, asks for nothing more, and then leaves.
    pub fn drain(&mut self) {
        if self.state != State::Left {
            self.state = State::Draining;
        }
        self.leave_if_done();
    }

    /// Notes that time passes. To be called a few times a second.
    pub fn tick(&mut self, now: Duration) {
        if let State::Resting(until) = self.state
            && until <= now
        {
            self.state = State::Open;
        }
        if now >= self.next_look {
            self.begin_look(now);
        }
    }

    /// Returns the number of partitions that run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.runs.len()
    }

    fn leave_if_done(&mut self) {
        if self.state == State::Draining && self.runs.is_empty() {
            self.state = State::Left;
            self.commands.push_back(Command::Leave);
        }
    }

    /// Returns true if a partition of this priority could start.
    fn has_room(&self, priority: Priority) -> bool {
        let Capacity { common, urgent } = self.capacity;
        if is_urgent(priority) {
            return self.runs.len() < common.saturating_add(urgent);
        }
        // Urgent work takes its own room first, then common room.
        let beside = self.urgent_runs.min(urgent);
        self.runs.len() - beside < common
    }

    fn begin_look(&mut self, now: Duration) {
        if self.look.is_none() {
            self.look_from(0, now);
        }
    }

    /// Goes on with the first wish from `place` that there is room for.
    fn look_from(&mut self, place: usize, now: Duration) {
        if self.state != State::Open {
            return;
        }
        let is_open = |wish: &Wish| {
            self.has_room(wish.subject.priority) && !self.waiting_subjects.contains(&wish.subject)
        };
        let rest = self.wishes.iter().enumerate().skip(place);
        let Some((place, wish)) = rest.into_iter().find(|(_, wish)| is_open(wish)) else {
            self.next_look = now.saturating_add(LOOK_PERIOD);
            self.wait_for_loaded();
            return;
        };
        let subject = wish.subject.clone();
        let pull = self.pull(subject, Duration::ZERO);
        let found = false;
        self.look = Some(Look { pull, place, found });
    }

    /// Lets a request wait for each loaded circuit and priority that there is room for.
    fn wait_for_loaded(&mut self) {
        let is_missing = |wish: &&Wish| {
            wish.is_loaded
                && self.has_room(wish.subject.priority)
                && !self.waiting_subjects.contains(&wish.subject)
        };
        let missing = self.wishes.iter().filter(is_missing);
        let missing: Vec<Subject> = missing.map(|wish| wish.subject.clone()).collect();
        for subject in missing {
            let pull = self.pull(subject.clone(), WAIT);
            self.waiting_subjects.insert(subject.clone());
            self.waiting.insert(pull, subject);
        }
    }

    fn pull(&mut self, subject: Subject, wait: Duration) -> PullId {
        let pull = PullId(self.next_pull);
        self.next_pull += 1;
        let command = Command::Pull {
            pull,
            subject,
            wait,
        };
        self.commands.push_back(command);
        pull
    }
}

#[cfg(test)]
mod tests;
