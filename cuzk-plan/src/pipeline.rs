//! One machine's pipeline over simulated time: workers, queues, locks and memory.
//!
//! The order of work and its memory are decided by [`cuzk_scheduler`]'s own code, which
//! gets simulated instants. Not here: how long a stage takes, and how stages slow each
//! other. The invariants:
//!
//! * A worker has at most one partition. A device's lock has at most one holder.
//! * A synthesis worker keeps its partition until the queue behind it has room.
//! * Memory is charged from a partition's admission to its end.

use std::collections::VecDeque;

use cuzk_scheduler::admission::{Lane, Need, Reservation};
use cuzk_scheduler::priority::Rank;

use crate::PlanError;
use crate::activity::Activity;
use crate::contention::Shared;
use crate::devices::Devices;
use crate::entrance::{Admitted, Entrance, Piece};
use crate::freeing::Freeing;
use crate::kind::Kind;
use crate::line::Line;
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::recipe::{Recipe, Stage};
use crate::run::{Live, Request, Run};
use crate::slots::Slots;

/// A piece on its way.
#[derive(Debug)]
struct Flight {
    piece: Piece,
    kind: Kind,
    rank: Rank,
    device: usize,
    memory: Option<Reservation<Kind>>,
}

/// The end of a stage. The number is a flight's, or a request's.
#[derive(Clone, Copy, Debug)]
enum End {
    Receiving(usize),
    Loading(usize),
    Synthesis(usize),
    Preparation(usize),
    Kernels(usize),
    G2(usize),
    Finish(usize),
    Freeing,
}

/// A simulated machine.
struct Pipeline<I: Iterator<Item = Request>> {
    run: Run,
    recipes: [Option<Recipe>; 4],
    loaded: [bool; 4],
    now_s: f64,
    requests: std::iter::Peekable<I>,
    in_flight: usize,
    entrance: Entrance,
    line: Line,
    devices: Devices,
    flights: Slots<Flight>,
    live: Slots<Live>,
    activity: Activity<End>,
    ended: VecDeque<End>,
    freeing: Freeing,
    outcome: Outcome,
}

/// Returns what becomes of `requests`, which are in the order of their arrival, on
/// `machine`.
///
/// # Errors
/// [`PlanError::NoCosts`] if a kind that `kinds` lists has no costs on the machine.
/// [`PlanError::Memory`] if a partition of one can never have its memory.
pub fn simulate(
    machine: &Machine,
    kinds: &[Kind],
    run: Run,
    requests: impl Iterator<Item = Request>,
) -> Result<Outcome, PlanError> {
    let mut pipeline = Pipeline::new(machine, kinds, run, requests)?;
    pipeline.run();
    Ok(pipeline.outcome)
}

impl<I: Iterator<Item = Request>> Pipeline<I> {
    fn new(machine: &Machine, kinds: &[Kind], run: Run, requests: I) -> Result<Self, PlanError> {
        let engine = &machine.engine;
        let entrance = Entrance::new(engine);
        let shared = Shared::new(machine, run.interference);
        let mut recipes = [const { None }; 4];
        for &kind in kinds {
            let recipe = Recipe::new(machine, kind, run.size)?;
            entrance.check(&recipe, engine)?;
            recipes[kind as usize] = Some(recipe);
        }
        Ok(Self {
            run: Run {
                group: run.group.max(1),
                in_flight: run.in_flight.max(1),
                ..run
            },
            recipes,
            loaded: [true; 4],
            now_s: 0.0,
            requests: requests.peekable(),
            in_flight: 0,
            entrance,
            line: Line::new(engine.synthesis_lookahead as usize),
            devices: Devices::new(
                machine.gpus.count as usize,
                engine.workers_per_device as usize,
            ),
            flights: Slots::default(),
            live: Slots::default(),
            activity: Activity::new(shared, f64::from(machine.cpu.hardware_threads)),
            ended: VecDeque::new(),
            freeing: Freeing::new(engine.dealloc),
            outcome: Outcome::default(),
        })
    }

    fn run(&mut self) {
        let mut ended = Vec::new();
        loop {
            self.settle();
            let end = self.activity.until_next();
            let arrival = self.until_arrival();
            let Some(seconds) = end.into_iter().chain(arrival).min_by(f64::total_cmp) else {
                break;
            };
            self.count(seconds);
            self.activity.pass(seconds, &mut ended);
            self.now_s += seconds;
            self.ended.extend(ended.drain(..));
        }
        self.outcome.busy.used = self.activity.used();
    }

    /// Does all that can happen at this moment.
    fn settle(&mut self) {
        loop {
            while let Some(end) = self.ended.pop_front() {
                self.end(end);
            }
            let moved = self.accept() | self.admit(Lane::Critical) | self.admit(Lane::Common);
            let moved = moved | self.hand_over() | self.claim() | self.lock() | self.free();
            if !moved && self.ended.is_empty() {
                return;
            }
        }
    }

    /// Returns the seconds until the next request; none if no more can come now.
    fn until_arrival(&mut self) -> Option<f64> {
        if self.in_flight >= self.run.in_flight {
            return None;
        }
        let next = self.requests.peek()?;
        Some((next.asked_s - self.now_s).max(0.0))
    }

    fn accept(&mut self) -> bool {
        let mut any = false;
        while self.until_arrival() == Some(0.0)
            && let Some(request) = self.requests.next()
        {
            let Some(recipe) = &self.recipes[request.kind as usize] else {
                continue;
            };
            any = true;
            self.in_flight += 1;
            let live = Live {
                kind: request.kind,
                asked_s: self.now_s,
                partitions_left: recipe.partitions,
            };
            let (stage, times) = (recipe.receiving, f64::from(recipe.partitions));
            let request = self.live.insert(live);
            self.begin(End::Receiving(request), stage, times);
        }
        any
    }

    /// Begins a stage. One that takes no time ends at once.
    fn begin(&mut self, end: End, stage: Stage, times: f64) {
        if stage.alone_s > 0.0 {
            self.activity.begin(end, &stage, times);
        } else {
            self.ended.push_back(end);
        }
    }

    /// Begins the stage of a flight that `of` names.
    fn fly(&mut self, end: End, flight: usize, of: impl Fn(&Recipe) -> Stage) {
        let Some(known) = self.flights.get(flight) else {
            return;
        };
        if let Some(recipe) = &self.recipes[known.kind as usize] {
            let times = f64::from(known.piece.partitions);
            self.begin(end, of(recipe), times);
        }
    }

    fn end(&mut self, end: End) {
        match end {
            End::Receiving(request) => self.submit(request),
            End::Loading(flight) => self.fly(End::Synthesis(flight), flight, |r| r.synthesis),
            End::Synthesis(flight) => self.synthesized(flight),
            End::Preparation(flight) => self.queue_for_lock(flight),
            End::Kernels(flight) => {
                let device = self.flights.get(flight).map_or(0, |flight| flight.device);
                self.devices.unlock(device);
                self.fly(End::G2(flight), flight, |recipe| recipe.g2);
            }
            End::G2(flight) => self.fly(End::Finish(flight), flight, |recipe| recipe.finish),
            End::Finish(flight) => self.finish(flight),
            End::Freeing => self.freeing.end(),
        }
    }

    fn submit(&mut self, request: usize) {
        let Some(&live) = self.live.get(request) else {
            return;
        };
        let Some(recipe) = &self.recipes[live.kind as usize] else {
            return;
        };
        let mut pieces: Vec<(Piece, Need<Kind>)> = Vec::new();
        let mut left = live.partitions_left;
        while left > 0 {
            let partitions = left.min(self.run.group);
            left -= partitions;
            pieces.push((
                Piece {
                    request,
                    partitions,
                },
                recipe.need.clone(),
            ));
        }
        self.entrance.submit(live.kind, live.asked_s, pieces);
    }

    fn admit(&mut self, lane: Lane) -> bool {
        let mut any = false;
        while let Some(admitted) = self.entrance.next(lane) {
            any = true;
            for &kind in &admitted.evicted {
                self.loaded[kind as usize] = false;
            }
            self.take_off(admitted);
        }
        any
    }

    fn take_off(&mut self, admitted: Admitted) {
        let Admitted { piece, rank, .. } = admitted;
        let Some(live) = self.live.get(piece.request) else {
            return;
        };
        if admitted.memory.is_none() {
            self.outcome.impossible += 1;
            return;
        }
        let used = self.entrance.used_bytes();
        self.outcome.peak_bytes = self.outcome.peak_bytes.max(used);
        let kind = live.kind;
        let flight = self.flights.insert(Flight {
            piece,
            kind,
            rank,
            device: 0,
            memory: admitted.memory,
        });
        if std::mem::replace(&mut self.loaded[kind as usize], true) {
            self.end(End::Loading(flight));
        } else {
            self.fly(End::Loading(flight), flight, |recipe| recipe.loading);
        }
    }

    /// Queues a synthesised piece. A critical one goes to a device at once.
    fn synthesized(&mut self, number: usize) {
        let Some(flight) = self.flights.get(number) else {
            return;
        };
        if flight.rank.is_critical() {
            self.prepare(number, self.devices.least_busy());
        } else {
            self.line.add(flight.rank, number);
        }
    }

    fn hand_over(&mut self) -> bool {
        let mut any = false;
        while self.line.let_in() {
            any = true;
            self.entrance.return_worker(Lane::Common);
        }
        any
    }

    /// Gives queued pieces to idle workers of devices.
    fn claim(&mut self) -> bool {
        let mut any = false;
        while !self.line.is_empty()
            && let Some(device) = self.devices.take_worker()
            && let Some(flight) = self.line.take()
        {
            any = true;
            self.prepare(flight, device);
        }
        any
    }

    fn prepare(&mut self, number: usize, device: usize) {
        if let Some(flight) = self.flights.get_mut(number) {
            flight.device = device;
        }
        self.fly(End::Preparation(number), number, |recipe| {
            recipe.preparation
        });
    }

    fn queue_for_lock(&mut self, number: usize) {
        if let Some(flight) = self.flights.get(number) {
            let (device, is_urgent) = (flight.device, flight.rank.is_critical());
            self.devices.queue(device, number, is_urgent);
        }
    }

    fn lock(&mut self) -> bool {
        let mut any = false;
        while let Some(next) = self.devices.lock_next() {
            any = true;
            self.fly(End::Kernels(next), next, |recipe| recipe.kernels);
        }
        any
    }

    fn finish(&mut self, number: usize) {
        let Some(flight) = self.flights.take(number) else {
            return;
        };
        drop(flight.memory);
        if flight.rank.is_critical() {
            self.entrance.return_worker(Lane::Critical);
        } else {
            self.devices.return_worker(flight.device);
        }
        if let Some(recipe) = &self.recipes[flight.kind as usize] {
            self.freeing.add(recipe.freeing);
        }
        self.outcome.partitions += u64::from(flight.piece.partitions);
        self.end_request(flight.piece);
    }

    fn end_request(&mut self, piece: Piece) {
        let live = self.live.get_mut(piece.request);
        let Some(proof) = live.and_then(|live| live.proved(piece.partitions, self.now_s)) else {
            return;
        };
        self.live.take(piece.request);
        self.in_flight -= 1;
        self.outcome.end_s = self.now_s;
        self.outcome.proofs.push(proof);
    }

    /// Begins to free the memory that waits for it.
    fn free(&mut self) -> bool {
        let mut any = false;
        while let Some(stage) = self.freeing.begin_next() {
            any = true;
            self.begin(End::Freeing, stage, 1.0);
        }
        any
    }

    /// Counts the busy times of the next `seconds`.
    fn count(&mut self, seconds: f64) {
        let busy = &mut self.outcome.busy;
        let blocked = self.line.blocked();
        busy.blocked_s += blocked as f64 * seconds;
        let at_work = self.entrance.busy_workers().saturating_sub(blocked);
        busy.synthesis_s += at_work as f64 * seconds;
        self.devices.count(seconds, busy);
        if self.entrance.waits_for_memory() {
            busy.memory_wait_s += seconds;
        }
    }
}
