//! The work that waits for a synthesis worker and for its memory.
//!
//! Not the order of work: [`cuzk_scheduler`]'s admission decides it, over simulated
//! instants. The invariant: a worker is taken for each piece that is admitted.

use std::time::{Duration, Instant};

use cuzk_scheduler::admission::{
    Admission, Entrance as Door, Lane, Limits, Need, Reservation, Turn,
};
use cuzk_scheduler::priority::{Patience, Rank};

use crate::PlanError;
use crate::kind::Kind;
use crate::machine::Engine;
use crate::recipe::Recipe;
use crate::units::gib;

/// The patience of the engine's default configuration.
const PATIENCE: Patience = Patience {
    normal: Duration::from_secs(30 * 60),
    low: Duration::from_secs(4 * 60 * 60),
};

/// Partitions of one request that go together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) request: usize,
    pub(crate) partitions: u32,
}

/// A piece with its memory, or without if that can never be free.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) piece: Piece,
    pub(crate) rank: Rank,
    pub(crate) memory: Option<Reservation<Kind>>,
    pub(crate) evicted: Vec<Kind>,
}

/// The entrance to a machine's pipeline.
#[derive(Debug)]
pub(crate) struct Entrance {
    origin: Instant,
    admission: Admission<Piece, Kind>,
    waiting: usize,
    workers: usize,
    idle_workers: usize,
    is_critical_idle: bool,
}

impl Entrance {
    /// Returns the entrance of an engine of this configuration.
    pub(crate) fn new(engine: &Engine) -> Self {
        let workers = engine.partition_workers as usize;
        let limits = Limits {
            capacity: usize::MAX,
            total_bytes: gib(engine.budget_gib),
            critical_reserve_bytes: gib(engine.critical_reserve_gib),
            patience: PATIENCE,
        };
        Self {
            origin: Instant::now(),
            admission: Admission::new(limits),
            waiting: 0,
            workers,
            idle_workers: workers,
            is_critical_idle: true,
        }
    }

    /// Returns an error if the memory of a partition can never be free.
    pub(crate) fn check(&self, recipe: &Recipe, engine: &Engine) -> Result<(), PlanError> {
        let checked = self.admission.check(recipe.kind.priority(), &recipe.need);
        let kind = recipe.kind.name();
        checked.map_err(|over| PlanError::memory(kind, over, engine.budget_gib))
    }

    /// Queues pieces of one request, which arrived at `asked_s`.
    pub(crate) fn submit(&mut self, kind: Kind, asked_s: f64, pieces: Vec<(Piece, Need<Kind>)>) {
        let lane = if kind.is_critical() {
            Lane::Critical
        } else {
            Lane::Common
        };
        let since = self.origin + Duration::from_secs_f64(asked_s);
        self.waiting += pieces.len();
        let priority = kind.priority();
        let submitted = self
            .admission
            .submit(Door::AtOnce, lane, priority, since, pieces);
        // An open admission without a capacity refuses nothing.
        debug_assert!(submitted.is_ok());
    }

    /// Takes a worker of a lane for the next piece with its memory, if there are both.
    pub(crate) fn next(&mut self, lane: Lane) -> Option<Admitted> {
        let is_critical = lane == Lane::Critical;
        let is_idle = if is_critical {
            self.is_critical_idle
        } else {
            self.idle_workers > 0
        };
        if !is_idle || self.waiting == 0 {
            return None;
        }
        let turn = self.admission.try_next(lane)?;
        self.waiting -= 1;
        let (memory, (piece, ticket, evicted)) = match turn {
            Turn::Admitted {
                item,
                ticket,
                memory,
                evicted,
            } => (Some(memory), (item, ticket, evicted.to_vec())),
            Turn::Impossible { item, ticket, .. } => (None, (item, ticket, Vec::new())),
        };
        match lane {
            _ if memory.is_none() => {}
            Lane::Critical => self.is_critical_idle = false,
            Lane::Common | Lane::Retry => self.idle_workers -= 1,
        }
        Some(Admitted {
            piece,
            rank: ticket.rank(),
            memory,
            evicted,
        })
    }

    /// Gives back the worker of a lane.
    pub(crate) fn return_worker(&mut self, lane: Lane) {
        if lane == Lane::Critical {
            self.is_critical_idle = true;
        } else {
            self.idle_workers += 1;
        }
    }

    /// Returns the synthesis workers that have a piece.
    pub(crate) fn busy_workers(&self) -> usize {
        self.workers.saturating_sub(self.idle_workers)
    }

    /// Returns true if a worker is idle although work waits: for its memory.
    pub(crate) fn waits_for_memory(&self) -> bool {
        self.idle_workers > 0 && self.waiting > 0
    }

    /// Returns the charged memory.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.admission.usage().used_bytes
    }
}
