//! The model against the published measurements.
#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use cuzk_plan::machine::Machine;
use cuzk_plan::seed::{MACHINE, Point, check};

/// The largest difference, as a share of the published time.
const TOLERANCE: f64 = 0.05;

/// The points that the two parameters were chosen with. The cost of a constraint's
/// synthesis is that of isolation. The share of time that waits for memory is chosen so
/// that c=20 fits. All other points are predictions.
const CALIBRATED_ON: [&str; 2] = ["isolation", "c=20"];

fn points(change: impl FnOnce(&mut Machine)) -> Vec<Point> {
    let mut machine = Machine::parse("seed-7995wx.toml", MACHINE).unwrap();
    change(&mut machine);
    check(&machine).unwrap()
}

fn model_s(points: &[Point], name: &str) -> f64 {
    points
        .iter()
        .find(|point| point.point == name)
        .unwrap()
        .model_s
}

#[test]
fn all_eight_published_points_are_within_five_percent() {
    let points = points(|_| ());
    assert_eq!(points.len(), 8);
    for point in &points {
        println!(
            "{:20} {:6.2} {:6.2}",
            point.point, point.published_s, point.model_s
        );
        assert!(point.difference.abs() <= TOLERANCE, "{point:?}");
        let is_calibrated = CALIBRATED_ON.contains(&point.point);
        assert_eq!(point.calibrated_on, is_calibrated, "{point:?}");
    }
}

/// Without a mechanism its points are missed: no result is in a table.
#[test]
fn each_mechanism_makes_its_part_of_the_result() {
    let with = points(|_| ());
    let without_waits = points(|machine| machine.contention.memory_wait_share = 0.0);
    assert!(model_s(&without_waits, "c=20") < 0.96 * model_s(&with, "c=20"));
    assert_eq!(
        model_s(&without_waits, "isolation"),
        model_s(&with, "isolation")
    );
    // With more hardware threads, an MSM on 192 threads takes none from synthesis.
    let gain = |points: &[Point]| model_s(points, "c=20") - model_s(points, "interventions 1+2");
    let wide = points(|machine| {
        machine.cpu.hardware_threads = 384;
        machine
            .costs
            .porep
            .as_mut()
            .unwrap()
            .g2_overhead_us_per_thread /= 2.0;
    });
    assert!(gain(&with) > 1.0, "{}", gain(&with));
    assert!(gain(&wide) < gain(&with), "{} {}", gain(&wide), gain(&with));
    let fewer_workers = points(|machine| machine.engine.partition_workers = 7);
    assert!(model_s(&fewer_workers, "c=20") > 1.2 * model_s(&with, "c=20"));
}

/// Two runs of one description are equal to the last bit.
#[test]
fn runs_are_repeatable() {
    assert_eq!(points(|_| ()), points(|_| ()));
}
