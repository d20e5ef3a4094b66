//! The watchdog's thread: it gives up devices that do not answer in time, and
//! replaces the workers that are lost to them.
//!
//! Not the bookkeeping, which is the fleet's. It also sees whether the engine is at rest,
//! and has devices that rested long enough looked at again.

use std::sync::Arc;
use std::time::Instant;

use supraseal_sys::dealloc::trim_heap;

use crate::engine::core::Core;
use crate::engine::fleet::watchdog::{REST, StalledCall};
use crate::engine::route::FailedAt;
use crate::error::ErrorCode;
use crate::pipeline::Step;
use crate::{Error, Result};

/// Looks at the calls of devices until the watchdog is closed. `replace` starts a finish
/// worker of this number in the place of a lost one.
pub(super) fn run(core: &Core, replace: impl Fn(usize) -> Result<()>) {
    let mut lost = LostWorkers::default();
    let mut looked = Instant::now();
    while core.fleet.watchdog.next_look() {
        look(core, &mut lost, &replace);
        if looked.elapsed() >= REST {
            looked = Instant::now();
            if core.compute.buffers.give_up_at_rest() {
                trim_heap();
            }
        }
    }
}

/// The finish workers that wait for a device that was given up.
#[derive(Debug, Default)]
pub(super) struct LostWorkers {
    lost: usize,
    replaced: usize,
}

/// Looks at the calls of devices once.
pub(super) fn look(core: &Core, workers: &mut LostWorkers, replace: &impl Fn(usize) -> Result<()>) {
    let watchdog = &core.fleet.watchdog;
    if watchdog.any_computes() {
        core.dispatch.heartbeat.beat();
    }
    let stalled = watchdog.stalled();
    workers.lost += stalled.iter().filter(|call| call.is_of_all()).count();
    while workers.replaced < workers.lost && is_replaced(core, replace, workers.replaced) {
        workers.replaced += 1;
    }
    for call in stalled {
        let key = call.key;
        watchdog.lose(key);
        let job = Arc::clone(&call.again.job);
        core.guarded("watchdog", &job, || give_up(core, call));
        watchdog.abandon(key);
    }
    // An attempt that only a rested device can take may have waited for its rest.
    if core.fleet.any_is_rested() {
        core.dispatch.ready.wake();
    }
}

/// Returns true if the next replacement was started. If not, it is tried again at the
/// next look.
fn is_replaced(core: &Core, replace: &impl Fn(usize) -> Result<()>, replaced: usize) -> bool {
    let begun = replace(core.config.pipeline.finish_workers + replaced);
    if let Err(error) = &begun {
        tracing::error!(
            code = %ErrorCode::of(error), %error,
            "a finish worker is lost to a device that does not answer"
        );
    }
    begun.is_ok()
}

fn give_up(core: &Core, stalled: StalledCall) {
    let StalledCall {
        call,
        ticket,
        again,
        ..
    } = stalled;
    let error = Error::Stalled {
        partition: again.partition,
        after_s: core.fleet.watchdog.limit().as_secs(),
    };
    core.failed(
        FailedAt::new(Step::Start, call.device),
        again,
        ticket,
        error,
    );
}
