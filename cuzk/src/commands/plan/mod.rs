//! `cuzk plan`: what machines will do, by simulation.
//!
//! Not the model, which is `cuzk-plan`: this reads files and prints results.

use std::fmt::Write;

use clap::Args;
use cuzk_plan::machine::Machine;
use cuzk_plan::seed::{self, Point};

use super::Context;
use crate::failure::{Failure, failed};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// Compare the model with the published measurements of another engine, and print an
    /// object for each point.
    #[arg(long)]
    pub(crate) check_seed: bool,
}

pub(crate) fn run(context: &Context, _args: &Plan) -> Result<(), Failure> {
    check_seed(context)
}

fn check_seed(context: &Context) -> Result<(), Failure> {
    let machine = Machine::parse("seed-7995wx.toml", seed::MACHINE).map_err(failed)?;
    let points = seed::check(&machine).map_err(failed)?;
    if context.json {
        return points
            .iter()
            .try_for_each(|point| output::print(true, point, |_| String::new()));
    }
    output::print_lines(&seed_text(&points))
}

fn seed_text(points: &[Point]) -> String {
    let mut text = String::from("point                published     model  difference");
    for point in points {
        let mark = if point.calibrated_on {
            "  calibrated on"
        } else {
            ""
        };
        // Writing into a String does not fail.
        let _ = write!(
            text,
            "\n{:20} {:7.1} s {:7.2} s {:+9.1} %{mark}",
            point.point,
            point.published_s,
            point.model_s,
            100.0 * point.difference
        );
    }
    text
}
