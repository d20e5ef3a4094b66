//! The threads and the memory of stages, the memory that is kept, and the metrics of it.

use std::collections::HashMap;
use std::{ptr, thread};

use cuzk_bounded::BoundedJoin as _;
use cuzk_groth16::backend::HostBG2;
use cuzk_memory::{Checkpoint, Dealloc};
use cuzk_scheduler::admission::Need;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use supraseal_sys::device::BG2;

use super::*;
use crate::Error;
use crate::config::Devices;
use crate::engine::assets::DigestState;
use crate::engine::preload::reserve;
use crate::engine::workers::admission::pool_of;
use crate::engine::{device_options, devices, host_b_g2};
use crate::job::Owner as _;

/// Returns the gauges and counters that this thread sets during `work`, by name.
fn measured(work: impl FnOnce()) -> HashMap<String, f64> {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    ::metrics::with_local_recorder(&recorder, work);
    let metrics = snapshotter.snapshot().into_vec().into_iter();
    let metrics = metrics.map(|(key, _, _, value)| {
        let value = match value {
            DebugValue::Counter(count) => count as f64,
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Histogram(samples) => samples.len() as f64,
        };
        (key.key().name().to_owned(), value)
    });
    metrics.collect()
}

#[test]
fn a_thread_of_the_engines_own_pool_may_not_wait_for_it() {
    let case = Case::new(1, false);
    let of_pool = case.core().check_caller();
    assert!(
        matches!(of_pool, Err(Error::OwnThread)),
        "the case is its pool"
    );
    let core = Arc::clone(case.core());
    let other = thread::spawn(move || core.check_caller());
    assert!(other.join_bounded().unwrap().is_ok());
}

#[test]
fn an_engine_knows_if_it_decodes() {
    let case = Case::new(1, false);
    let compute = &case.core().compute;
    assert!(!compute.is_decoding());
    for critical in [false, true] {
        let decoded = compute.decode(critical, || {
            assert!(compute.is_decoding());
            Ok(7)
        });
        assert_eq!(decoded.unwrap(), 7);
        assert!(!compute.is_decoding());
    }
    let panicked = compute.decode(false, || -> Result<()> {
        std::panic::resume_unwind(Box::new("a decoder's defect"))
    });
    assert!(matches!(
        panicked,
        Err(Error::Internal {
            stage: "decode",
            ..
        })
    ));
    assert!(!compute.is_decoding());
    assert_eq!(compute.aside("test", || Ok(8)).unwrap(), 8);
}

#[test]
fn only_work_that_is_not_critical_is_throttled() {
    for is_on in [false, true] {
        let case = Case::with(1, false, |sizes| sizes.config.pipeline.throttle = is_on);
        let is_throttled = |critical| {
            let checkpoint = Checkpoint::never();
            let (pool, compute) = (&case.bench.pool, &case.core().compute);
            let resources = compute.synthesis_resources(pool, critical, true, checkpoint);
            resources.throttle.is_some()
        };
        assert_eq!([false, true].map(is_throttled), [is_on, false]);
    }
}

/// The loading of a critical circuit waits for no thread of what is paused for it.
#[test]
fn each_lane_loads_on_its_own_threads() {
    let case = Case::new(1, false);
    let (config, pool) = (case.sizes.config.clone(), Arc::clone(&case.bench.pool));
    // Dedicated workers with threads of their own.
    let core = Core::new(config, pool, Vec::new(), Arc::new(Request::decode)).unwrap();
    let on = |lane| ptr::from_ref(pool_of(&core, lane));
    let synthesis = ptr::from_ref(core.compute.synthesis_pool());
    assert_eq!(on(Lane::Common), synthesis);
    for lane in DEDICATED {
        let worker = core.fleet.dedicated(core.fleet.dedicated_slot(lane));
        assert_eq!(on(lane), Arc::as_ptr(&worker.unwrap().pool), "{lane:?}");
        assert_ne!(on(lane), synthesis);
    }
    for critical in [false, true] {
        let pool = core.compute.auxiliary_pool(critical);
        let names = pool.broadcast(|_| thread::current().name().unwrap().to_owned());
        assert_eq!(names[0].starts_with("cuzk-urgent-"), critical, "{names:?}");
    }
}

/// Memory that is kept for the next partition gives way to what was admitted.
#[test]
fn kept_memory_makes_room_for_what_has_its_turn() {
    let case = Case::with(1, false, |sizes| {
        sizes.config.memory.dealloc = Dealloc::Recycle;
    });
    let core = case.core();
    let buffers = &core.compute.buffers;
    drop(buffers.take(1 << 16).unwrap());
    let kept_bytes = buffers.kept_bytes();
    assert!(kept_bytes > 0);
    let never = Checkpoint::never();
    core.make_room(&[], &never);
    assert_eq!(buffers.kept_bytes(), kept_bytes, "there is room for both");
    let total_bytes = core.dispatch.admission.usage().total_bytes;
    let all = reserve(core, &Need::own(total_bytes), &never).unwrap();
    core.make_room(&[], &never);
    assert_eq!(buffers.kept_bytes(), 0);
    drop(all);
}

/// There is no room beside the second partition.
#[test]
fn kept_memory_makes_room_for_what_is_admitted() {
    let case = Case::with(1, false, |sizes| {
        sizes.config.memory.dealloc = Dealloc::Recycle;
    });
    let job = case.accept(POREP, 2);
    let _first = case.admit(Lane::Common).unwrap();
    let (core, buffers) = (case.core(), &case.core().compute.buffers);
    let own_bytes = core.assets.costs.known(job.circuit(), Lane::Common);
    let own_bytes = own_bytes.unwrap().own_bytes;
    let usage = core.dispatch.admission.usage();
    let rest = Need::own(usage.total_bytes - usage.used_bytes - own_bytes);
    let _rest = reserve(core, &rest, &Checkpoint::never()).unwrap();
    drop(buffers.take(1 << 16).unwrap());
    assert!(buffers.kept_bytes() > 0);
    let _second = case.admit(Lane::Common).unwrap();
    assert_eq!(buffers.kept_bytes(), 0);
}

#[test]
fn the_metrics_of_memory_are_those_of_this_moment() {
    let case = Case::with(1, false, |sizes| {
        sizes.config.memory.dealloc = Dealloc::Recycle;
    });
    let core = case.core();
    drop(core.compute.buffers.take(1 << 16).unwrap());
    let reserved = reserve(core, &Need::own(12345), &Checkpoint::never()).unwrap();
    let metrics = measured(|| core.report_memory());
    assert_eq!(metrics["cuzk_memory_reserved_bytes"], 12345.0);
    let kept_bytes = core.compute.buffers.kept_bytes() as f64;
    assert!(metrics["cuzk_buffers_kept_bytes"] == kept_bytes && kept_bytes > 0.0);
    drop(reserved);
}

#[test]
fn the_metrics_of_a_device_say_if_it_is_out() {
    let case = Case::new(1, false);
    case.accept(POREP, 1);
    case.make_ready(1);
    let metrics = measured(|| drop(case.start(0, Deed::ErrorInStart)));
    assert_eq!(metrics["cuzk_device_quarantined"], 1.0);
    assert_eq!(metrics["cuzk_device_faults_total"], 1.0);
    let metrics = measured(|| case.core().reinstate(0).unwrap());
    assert_eq!(metrics["cuzk_device_quarantined"], 0.0);
    let metrics = measured(|| case.core().reinstate(0).unwrap());
    assert!(metrics.is_empty(), "it was trusted: {metrics:?}");
}

#[test]
fn a_gpu_is_used_as_the_configuration_says() {
    let case = Case::with(1, false, |sizes| {
        let gpus = &mut sizes.config.gpus;
        gpus.memory_limit_bytes = Some(123);
        gpus.gpu_workers_per_device = 3;
        gpus.stall = Duration::from_secs(77);
    });
    let options = device_options(&case.sizes.config);
    assert_eq!((options.memory_bytes, options.workers), (Some(123), 3));
    assert_eq!(options.stall_limit, Duration::from_secs(77));
    assert_eq!(options.b_g2, case.sizes.config.gpus.b_g2);
}

#[test]
fn the_devices_are_those_of_the_configuration() {
    let case = Case::new(1, false);
    let mut config = case.sizes.config.clone();
    config.gpus.devices = Devices::Cpu;
    let on_cpu = devices(&config, &case.bench.pool).unwrap();
    assert_eq!(on_cpu.len(), 1);
    assert!(on_cpu[0].backend.is_this_cpu());
    // No machine has so many.
    config.gpus.devices = Devices::Ordinals(vec![4096]);
    let error = devices(&config, &case.bench.pool).unwrap_err();
    assert!(matches!(error, Error::Start { .. }));
    assert!(error.to_string().contains("GPU 4096"), "{error}");
    for (b_g2, is_here) in [(BG2::Device, false), (BG2::Cpu, true), (BG2::Auto, true)] {
        config.gpus.b_g2 = b_g2;
        let place = host_b_g2(&config).unwrap();
        assert_eq!(matches!(place, HostBG2::Kernel { .. }), is_here);
        assert_eq!(matches!(place, HostBG2::Absent), !is_here);
    }
}

#[test]
fn each_state_of_the_digests_has_a_name() {
    let names = [
        (DigestState::Off, "not_compared"),
        (DigestState::Waits, "waits"),
        (DigestState::Checking, "comparing"),
        (DigestState::Right, "right"),
        (DigestState::Wrong, "wrong"),
        (DigestState::NotListed, "not_listed"),
        (DigestState::Unreadable, "unreadable"),
    ];
    for (state, name) in names {
        assert_eq!(state.name(), name);
    }
}

#[test]
fn what_is_asked_of_the_background_is_shown_and_stopped() {
    let case = Case::new(1, false);
    let assets = &case.core().assets;
    assert!(assets.multiples.asked().is_empty());
    assets.multiples.ask(id(POREP));
    assert_eq!(assets.multiples.asked(), [id(POREP).to_string()]);
    assert!(!assets.multiples.cancellation().is_cancelled());
    assert!(!assets.digests.cancellation().is_cancelled());
    crate::engine::workers::multiples::stop(case.core());
    crate::engine::workers::digests::stop(case.core());
    assert!(assets.multiples.cancellation().is_cancelled() && assets.multiples.is_closed());
    assert!(assets.digests.cancellation().is_cancelled() && assets.digests.is_closed());
}
