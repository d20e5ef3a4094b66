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
//! * A partition that excludes this worker is left to others when it comes back.
//! * A worker that fails again and again asks less and less often, so that it does not spoil
//!   the work of the others.

mod terms;
mod yields;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use cuzk_scheduler::priority::Priority;

use crate::message::WorkId;
use crate::subject::{Subject, is_urgent};
use yields::Yields;

pub use terms::{Ability, Capacity, Command, Delivery, PullId, RunEnd};

/// The time for which a request waits at the server.
pub const WAIT: Duration = Duration::from_secs(5);

/// The time between two looks at work for which no request waits. A partition takes seconds to
/// minutes, so a cold worker is idle for less than 1 % of its time because of it.
pub const LOOK_PERIOD: Duration = Duration::from_millis(500);

/// The time before a partition that excludes this worker can be delivered again.
pub const EXCLUDED_DELAY: Duration = Duration::from_secs(5);

/// The rest after a failure. It doubles with each failure in a row.
pub const FAILURE_REST: Duration = Duration::from_secs(1);

/// The longest rest after a failure.
pub const FAILURE_REST_MAX: Duration = Duration::from_secs(300);

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
    waiting: BTreeMap<PullId, Waiting>,
    waiting_subjects: BTreeSet<Subject>,
    /// The request of a look at waiting work, which goes through all wishes.
    look: Option<Look>,
    next_look: Duration,
    yields: Yields,
    /// The failures since the last proof.
    failures: u32,
    next_pull: u64,
    state: State,
    commands: VecDeque<Command<L>>,
}

#[derive(Clone, Debug)]
struct Wish {
    subject: Subject,
    is_loaded: bool,
}

#[derive(Clone, Debug)]
struct Waiting {
    subject: Subject,
    found: bool,
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
            yields: Yields::default(),
            failures: 0,
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
    pub fn delivered(&mut self, pull: PullId, delivery: Delivery<L>, now: Duration) {
        if let Some(look) = self.look.as_mut().filter(|look| look.pull == pull) {
            look.found = true;
        }
        if let Some(waiting) = self.waiting.get_mut(&pull) {
            waiting.found = true;
        }
        let Delivery {
            id,
            subject,
            is_excluded,
            lease,
        } = delivery;
        let is_urgent = is_urgent(subject.priority);
        let command = if self.runs.contains_key(&id) {
            Command::Join { id, lease }
        } else if is_excluded {
            self.yields.add(subject, now);
            let delay = EXCLUDED_DELAY;
            Command::Return { lease, delay }
        } else if self.state == State::Open && self.has_room(subject.priority) {
            self.runs.insert(id, is_urgent);
            self.urgent_runs += usize::from(is_urgent);
            Command::Start { id, lease }
        } else {
            let delay = Duration::ZERO;
            Command::Return { lease, delay }
        };
        self.commands.push_back(command);
    }

    /// Notes that a request is over: it was answered, it expired, or the server is gone.
    pub fn pull_ended(&mut self, pull: PullId, now: Duration) {
        if let Some(Waiting { subject, found }) = self.waiting.remove(&pull) {
            self.waiting_subjects.remove(&subject);
            if found {
                self.begin_look(now);
            } else if self.look.is_none() && self.state == State::Open {
                // Nothing waits for it, so the others are not asked for before their time.
                self.wait_for_loaded(now);
            }
            return;
        }
        if let Some(look) = self.look.take_if(|look| look.pull == pull) {
            let next = if look.found { 0 } else { look.place + 1 };
            self.look_from(next, now);
        }
    }

    /// Notes that a partition runs no more. After a failure the worker rests for a while.
    pub fn ended(&mut self, id: &WorkId, end: RunEnd, now: Duration) {
        if let Some(was_urgent) = self.runs.remove(id) {
            self.urgent_runs -= usize::from(was_urgent);
        }
        match end {
            RunEnd::Proved => self.failures = 0,
            RunEnd::Failed => {
                let rest = FAILURE_REST.saturating_mul(1 << self.failures.min(16));
                self.failures = self.failures.saturating_add(1);
                self.rest(now.saturating_add(rest.min(FAILURE_REST_MAX)));
            }
            RunEnd::Stopped => {}
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

    /// Asks for nothing until `until`, or until the end of a longer rest.
    pub fn rest(&mut self, until: Duration) {
        self.state = match self.state {
            State::Open => State::Resting(until),
            State::Resting(longer) => State::Resting(longer.max(until)),
            state @ (State::Draining | State::Left) => state,
        };
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
        self.yields.forget(now);
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
        let rest = self.wishes.iter().enumerate().skip(place);
        let open = |(_, wish): &(usize, &Wish)| self.longest_wait(&wish.subject, now).is_some();
        let Some((place, wish)) = rest.into_iter().find(open) else {
            self.next_look = now.saturating_add(LOOK_PERIOD);
            self.wait_for_loaded(now);
            return;
        };
        let subject = wish.subject.clone();
        let pull = self.pull(subject, Duration::ZERO);
        let found = false;
        self.look = Some(Look { pull, place, found });
    }

    /// Returns the time that another request of a subject may wait at the server; none if it
    /// is not to be asked for now.
    fn longest_wait(&self, subject: &Subject, now: Duration) -> Option<Duration> {
        if !self.has_room(subject.priority) || self.waiting_subjects.contains(subject) {
            return None;
        }
        self.yields.wait(subject, now)
    }

    /// Lets a request wait for each loaded circuit and priority that there is room for.
    fn wait_for_loaded(&mut self, now: Duration) {
        let loaded = self.wishes.iter().filter(|wish| wish.is_loaded);
        let missing = loaded.filter_map(|wish| {
            let wait = self.longest_wait(&wish.subject, now)?;
            Some((wish.subject.clone(), wait))
        });
        let missing: Vec<(Subject, Duration)> = missing.collect();
        for (subject, wait) in missing {
            let pull = self.pull(subject.clone(), wait);
            self.waiting_subjects.insert(subject.clone());
            let found = false;
            self.waiting.insert(pull, Waiting { subject, found });
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
