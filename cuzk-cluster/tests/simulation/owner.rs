//! The daemon that accepted the jobs: the real ledger, with a made-up journal and prover.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use cuzk_cluster::ledger::{Action, End, Ledger, Receipt, Settings};
use cuzk_cluster::message::{Control, Message, Outcome, SCHEMA, Sign, Work, WorkId};
use cuzk_scheduler::priority::Priority;

use crate::costs::Resource;
use crate::load::{Partition, proving_time, right_proof};
use crate::net::{Event, Life, Net, Request, ToOwner};
use crate::world::{Config, Plant, Violation};

const TICK: Duration = Duration::from_millis(500);
const SURVEY_PERIOD: Duration = Duration::from_secs(5);
/// A false statement is found by its witness, before it is proved.
const CHECKING: Duration = Duration::from_secs(2);

pub(crate) struct Owner {
    partitions: Rc<Vec<Partition>>,
    by_id: HashMap<WorkId, usize>,
    is_local: bool,
    plant: Option<Plant>,
    /// The journal: the ends that were recorded. It survives a crash.
    journal: HashMap<WorkId, End>,
    pub(crate) life: Life,
    pub(crate) is_alive: bool,
    pub(crate) is_frozen: bool,
    deferred: Vec<ToOwner>,
    ledger: Ledger,
    home: VecDeque<WorkId>,
    at_home: Option<(WorkId, u64)>,
    next_home: u64,
    next_survey: Duration,
    is_connected: bool,
    pub(crate) violation: Option<Violation>,
    pub(crate) proofs: u64,
    pub(crate) publications: u64,
    cores: Resource,
    /// The times of all ends, in order.
    ended_at: Vec<Duration>,
}

impl Owner {
    pub(crate) fn new(partitions: Rc<Vec<Partition>>, config: &Config) -> Self {
        let ids = partitions.iter().map(|partition| partition.work.id());
        let by_id = ids.enumerate().map(|(number, id)| (id, number)).collect();
        Self {
            partitions,
            by_id,
            is_local: config.is_local,
            plant: config.plant,
            journal: HashMap::new(),
            life: 0,
            is_alive: false,
            is_frozen: false,
            deferred: Vec::new(),
            ledger: Ledger::new(Settings::default()),
            home: VecDeque::new(),
            at_home: None,
            next_home: 0,
            next_survey: Duration::ZERO,
            is_connected: false,
            violation: None,
            proofs: 0,
            publications: 0,
            cores: Resource::new(config.costs.cores),
            ended_at: Vec::new(),
        }
    }

    /// Starts the process anew, with the journal of its earlier lives.
    pub(crate) fn start(&mut self, net: &mut Net) {
        self.life += 1;
        self.is_alive = true;
        self.is_frozen = false;
        self.is_connected = false;
        self.deferred.clear();
        self.home.clear();
        self.at_home = None;
        self.ledger = Ledger::new(Settings::default());
        let partitions = Rc::clone(&self.partitions);
        for partition in partitions.iter().filter(|p| p.accepted <= net.now) {
            self.offer(partition, net.now);
        }
        self.handle(ToOwner::Tick, net);
    }

    pub(crate) fn ended(&self) -> usize {
        self.journal.len()
    }

    /// Returns the time from a fifth of the ends to four fifths.
    pub(crate) fn middle(&self) -> Duration {
        let fifth = self.ended_at.len() / 5;
        let at = |place: usize| self.ended_at.get(place).copied().unwrap_or_default();
        at(4 * fifth).saturating_sub(at(fifth))
    }

    fn offer(&mut self, partition: &Partition, now: Duration) {
        let (id, subject) = (partition.work.id(), partition.work.subject());
        let is_recorded = self.journal.contains_key(&id);
        if !is_recorded || self.plant == Some(Plant::NoJournal) {
            let starts_at_home = self.is_local && subject.priority == Priority::Critical;
            // The client's call may come in again after a restart.
            let _ = self.ledger.offer(id, subject, starts_at_home, now);
        }
    }

    pub(crate) fn wake(&mut self, net: &mut Net) {
        self.is_frozen = false;
        if !self.is_alive {
            return;
        }
        for message in std::mem::take(&mut self.deferred) {
            self.handle(message, net);
        }
    }

    pub(crate) fn handle(&mut self, message: ToOwner, net: &mut Net) {
        if self.is_frozen {
            self.deferred.push(message);
            return;
        }
        let now = net.now;
        match message {
            ToOwner::Accepted(number) => {
                let partitions = Rc::clone(&self.partitions);
                self.offer(&partitions[number], now);
            }
            ToOwner::Published(id, attempt, position) => {
                self.ledger.published(&id, attempt, position, now);
            }
            ToOwner::PublishFailed(id, attempt) => self.ledger.publish_failed(&id, attempt, now),
            ToOwner::Survey(_) if self.plant == Some(Plant::NoSurveys) => {}
            ToOwner::Survey(survey) => self.ledger.survey(&survey, now),
            ToOwner::Result(number, bytes) => match Outcome::decode(&bytes) {
                Ok(outcome) => self.ledger.result(outcome, Receipt(number), now),
                Err(_) => net.send_to_server(Request::AcknowledgeResult(number)),
            },
            ToOwner::Sign(bytes) => {
                if let Ok(Sign { node, running }) = Sign::decode(&bytes) {
                    self.ledger.signed(&node, &running, now);
                }
            }
            ToOwner::Verified(id, check, is_good) => self.ledger.verified(&id, check, is_good, now),
            ToOwner::HomeDone(id, number) => self.home_done(id, number, now),
            ToOwner::Connected(is_connected) => {
                if self.is_connected != is_connected {
                    self.is_connected = is_connected;
                    self.ledger.connected(is_connected, now);
                }
            }
            ToOwner::Tick => self.tick(net),
        }
        self.carry_out(net);
        self.begin_at_home(net);
    }

    fn tick(&mut self, net: &mut Net) {
        self.ledger.tick(net.now);
        if net.now >= self.next_survey {
            self.next_survey = net.now + SURVEY_PERIOD;
            net.send_to_server(Request::Survey {
                life: self.life,
                asked_at: net.now,
                subjects: self.ledger.subjects().cloned().collect(),
            });
        }
        net.after(TICK, Event::Owner(self.life, ToOwner::Tick));
    }

    fn work(&self, id: &WorkId) -> &Work {
        &self.partitions[self.by_id[id]].work
    }

    fn begin_at_home(&mut self, net: &mut Net) {
        if self.at_home.is_some() {
            return;
        }
        let taken = self.home.pop_front();
        let can_take = taken.is_none() && self.is_local;
        let taken = taken.or_else(|| can_take.then(|| self.ledger.take_home(net.now))?);
        let Some(id) = taken else { return };
        self.next_home += 1;
        self.at_home = Some((id, self.next_home));
        let partition = &self.partitions[self.by_id[&id]];
        let takes = match partition.is_false {
            true => CHECKING,
            false => proving_time(&partition.work.circuit, net),
        };
        let done = ToOwner::HomeDone(id, self.next_home);
        net.after(takes, Event::Owner(self.life, done));
        self.carry_out(net);
    }

    fn home_done(&mut self, id: WorkId, number: u64, now: Duration) {
        if self.at_home != Some((id, number)) {
            return;
        }
        self.at_home = None;
        if self.partitions[self.by_id[&id]].is_false {
            let reason = "a constraint does not hold".to_owned();
            self.ledger.failed_at_home(&id, reason, now);
        } else {
            self.proofs += 1;
            self.ledger.proved_at_home(&id, right_proof(&id), now);
        }
    }

    fn carry_out(&mut self, net: &mut Net) {
        while let Some(action) = self.ledger.next_action() {
            match action {
                Action::Publish {
                    id,
                    attempt,
                    excluded,
                } => {
                    self.publications += 1;
                    let work = Work {
                        attempt,
                        excluded,
                        ..self.work(&id).clone()
                    };
                    let request = Request::Publish {
                        life: self.life,
                        id,
                        attempt,
                        topic: (SCHEMA, work.subject()),
                        bytes: work.encode().unwrap().into(),
                    };
                    let sending = self.cores.take(net.costs.sending, net.now);
                    net.publish_after(sending, request);
                }
                Action::Withdraw { position } => net.send_to_server(Request::Withdraw(position)),
                Action::Cancel { id } => {
                    let bytes = Control::Cancel(vec![id]).encode().unwrap();
                    net.send_to_server(Request::Control(bytes.into()));
                }
                Action::Verify {
                    id, check, proof, ..
                } => {
                    let is_false = self.partitions[self.by_id[&id]].is_false;
                    let is_good = proof == right_proof(&id) && !is_false;
                    let is_good = is_good || self.plant == Some(Plant::AcceptAll);
                    let verified = ToOwner::Verified(id, check, is_good);
                    let verifying = self.cores.take(net.costs.verifying, net.now);
                    net.after(verifying, Event::Owner(self.life, verified));
                }
                Action::ProveAtHome { id } => self.home.push_back(id),
                Action::StopAtHome { id } => {
                    self.home.retain(|waiting| *waiting != id);
                    self.at_home.take_if(|(running, _)| *running == id);
                }
                // The made-up prover asks for work, and has no queue of its own.
                Action::Taken { .. } | Action::Returned { .. } => {}
                Action::End { id, end } => {
                    self.ended_at.push(net.now);
                    self.record(id, end);
                }
                Action::Acknowledge { receipt } => {
                    net.send_to_server(Request::AcknowledgeResult(receipt.0));
                }
                Action::Rest { node, rest } => {
                    let rest_ms = u64::try_from(rest.as_millis()).unwrap();
                    let bytes = Control::Rest { node, rest_ms }.encode().unwrap();
                    net.send_to_server(Request::Control(bytes.into()));
                }
            }
        }
    }

    /// Writes an end into the journal, and compares it with the right one.
    fn record(&mut self, id: WorkId, end: End) {
        let is_false = self.partitions[self.by_id[&id]].is_false;
        let is_right = match &end {
            End::Proved { proof, .. } => !is_false && *proof == right_proof(&id),
            End::Failed { .. } => is_false,
        };
        if !is_right {
            self.violation.get_or_insert(Violation::WrongEnd(id));
        }
        if self.journal.insert(id, end).is_some() {
            self.violation.get_or_insert(Violation::EndedTwice(id));
        }
    }
}
