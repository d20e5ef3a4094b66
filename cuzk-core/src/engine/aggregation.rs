//! Aggregations: work of the engine that is no partition.
//!
//! Not what an aggregate is: that is [`crate::aggregate`]'s. The invariants: its memory is
//! charged before it is used; critical work pauses it.

use cuzk_filecoin::AggregateRequest;
use cuzk_groth16::aggregate::{VerifiedAggregate, keys_bytes};
use cuzk_kernels::Context;
use cuzk_memory::{Cancellation, Checkpoint};
use cuzk_scheduler::admission::Need;

use super::Engine;
use super::assets::AssetKey;
use super::core::Core;
use super::preload::reserve;
use crate::aggregate::{aggregate_within, memory_bytes};
use crate::{Error, Result};

/// Aggregates proofs of replication as [`Engine::aggregate`], until another thread raises
/// `stop`. An aggregation that waits for memory or computes pairings ends soon after that. One
/// that stands still for critical work ends when that work has ended.
///
/// # Errors
/// As [`Engine::aggregate`]; [`Error::Cancelled`].
pub fn aggregate_while(
    engine: &Engine,
    request: &AggregateRequest,
    stop: &Cancellation,
) -> Result<VerifiedAggregate> {
    match aggregate_under(Checkpoint::new(stop), &engine.core, request) {
        Err(Error::Stopped) => Err(Error::Cancelled),
        ended => ended,
    }
}

/// Aggregates the proofs of a request, once there is memory.
pub(super) fn aggregate(core: &Core, request: &AggregateRequest) -> Result<VerifiedAggregate> {
    aggregate_under(Checkpoint::never(), core, request)
}

fn aggregate_under(
    checkpoint: Checkpoint<'_>,
    core: &Core,
    request: &AggregateRequest,
) -> Result<VerifiedAggregate> {
    core.compute.check_caller()?;
    let need = Need {
        own_bytes: memory_bytes(&core.config, request)?,
        // As for the most proofs, because keys for fewer stay beside those for more.
        shared: Some((
            AssetKey::Aggregation,
            keys_bytes(AggregateRequest::PROOFS_MAX),
        )),
    };
    let checkpoint = checkpoint
        .paused_by(&core.dispatch.pause)
        .counted_by(&core.dispatch.heartbeat);
    let charged = reserve(core, &need, &checkpoint)?;
    core.report_memory();
    // Memory that is kept for partitions gives way, as it does for them.
    core.make_room(&[], &checkpoint);
    let context = Context {
        checkpoint: &checkpoint,
        ..core.compute.isa.into()
    };
    let keys = &core.assets.aggregation;
    let aggregate = || aggregate_within(context, &core.config, keys, request);
    let made = core.compute.aside("aggregate", aggregate);
    drop(charged);
    core.report_memory();
    made
}
