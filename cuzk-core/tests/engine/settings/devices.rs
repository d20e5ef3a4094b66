//! The rows of `[gpus]` that an engine on devices of the test's shows.

use std::sync::Arc;

use cuzk_core::engine::{device_options, devices, host_b_g2};
use cuzk_core::{Config, Engine};
use cuzk_groth16::backend::HostBG2;

use super::{Case, Held, KIND, Row, shown};
use crate::common::BoundedJob as _;
use crate::common::device::{Deed, Opened, Scripted, engine_on, pool};
use crate::common::{submit, tiny};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::does("gpus.devices", ["\"cpu\"", "[7]"], kind, ["cpu", "GPU 7"]),
        Row::does(
            "gpus.b_g2",
            ["\"cpu\"", "\"device\""],
            place,
            ["host", "device"],
        ),
        Row::does(
            "gpus.memory_limit",
            ["\"1GiB\"", "\"auto\""],
            |case| format!("{:?}", device_options(&case.config).memory_bytes),
            ["Some(1073741824)", "None"],
        ),
        Row::does("gpus.faults_max", ["1", "3"], faults, ["1", "3"]),
        Row::happens("gpus.stall_s", ["1", "3600"], silent, is_given_up),
        Row::happens("gpus.rest_s", ["1", "3600"], faulty, proves_again),
    ]
}

/// Returns the device that is opened. No machine of a test has an eighth GPU.
fn kind(case: &Case) -> String {
    match devices(&case.config, &pool(&case.config)) {
        Ok(devices) => devices[0].backend.name().to_owned(),
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("GPU 7"), "{error}");
            "GPU 7".to_owned()
        }
    }
}

fn place(case: &Case) -> String {
    let is_host = !matches!(host_b_g2(&case.config).unwrap(), HostBG2::Absent);
    shown(is_host, ["host", "device"])
}

fn is_out(engine: &Engine) -> bool {
    engine.status().devices[0].quarantined
}

fn prove(engine: &Engine) {
    submit(engine, tiny::job(KIND, 1)).wait_bounded().unwrap();
}

/// How many faults in a row put a device out.
fn faults(case: &Case) -> String {
    const ENOUGH: usize = 10;
    let config = case.with_tiny();
    let device = Scripted::new(&config, |_| Deed::ErrorInStart);
    let engine = engine_on(&config, &[&device]);
    let jobs = (0..ENOUGH).take_while(|_| {
        prove(&engine);
        !is_out(&engine)
    });
    (jobs.count() + 1).to_string()
}

fn held(config: &Config, device: Arc<Scripted>) -> Held {
    let engine = engine_on(config, &[&device]);
    Held {
        device: Some(Opened(device)),
        engine,
    }
}

/// A device that does not answer, with a partition.
fn silent(case: &Case) -> Held {
    let config = case.with_tiny();
    let held = held(&config, Scripted::new(&config, |_| Deed::Stall));
    drop(submit(&held.engine, tiny::job(KIND, 1)));
    held
}

fn is_given_up(held: &Held) -> bool {
    is_out(&held.engine)
}

/// A device that has failed once, for which it is out.
fn faulty(case: &Case) -> Held {
    let mut config = case.with_tiny();
    config.gpus.faults_max = 1;
    let fails_once = |n| {
        if n == 0 {
            Deed::ErrorInStart
        } else {
            Deed::Prove
        }
    };
    let held = held(&config, Scripted::new(&config, fails_once));
    prove(&held.engine);
    assert!(is_out(&held.engine));
    held
}

fn proves_again(held: &Held) -> bool {
    prove(&held.engine);
    held.device
        .as_ref()
        .is_some_and(|device| device.started() > 1)
}
