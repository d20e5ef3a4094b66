//! `cuzk version`: what was built, and with what it would run here.

use std::path::Path;

use clap::Args;
use cuzk_kernels::Isa;
use serde::Serialize;
use supraseal_sys::PROVES_ON_GPU;

use crate::failure::Failure;
use crate::machine::nvidia::{Answer, ask};
use crate::machine::system;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Version {
    /// Print the features, the kernels, the driver and the build, too.
    #[arg(short, long)]
    verbose: bool,
}

/// The version, and what a report of a problem needs besides.
#[derive(Debug, Serialize)]
pub(crate) struct VersionReport {
    version: &'static str,
    features: Vec<&'static str>,
    /// The instructions that this machine's processor has kernels for, the fastest first.
    kernels: Vec<&'static str>,
    gpu_driver: String,
    target: String,
    profile: &'static str,
    /// The commit, if the build was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'static str>,
    system: Option<String>,
    processor: Option<String>,
}

pub(crate) fn run(args: &Version, json: bool) -> Result<(), Failure> {
    if !args.verbose && !json {
        return output::print_lines(concat!("cuzk ", env!("CARGO_PKG_VERSION")));
    }
    output::print(json, &VersionReport::new(), text)
}

impl VersionReport {
    pub(crate) fn new() -> Self {
        let root = Path::new("/");
        let features = [
            ("cuda", PROVES_ON_GPU),
            ("peer-supraseal", cfg!(feature = "peer-supraseal")),
        ];
        let is_on = |(name, is_on): (&'static str, bool)| is_on.then_some(name);
        let mut kernels: Vec<_> = Isa::all().iter().map(|isa| isa.name()).collect();
        let best = Isa::best().name();
        kernels.sort_by_key(|name| (*name != best, *name == "portable"));
        Self {
            version: env!("CARGO_PKG_VERSION"),
            features: features.into_iter().filter_map(is_on).collect(),
            kernels,
            gpu_driver: driver(ask()),
            target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
            profile: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            },
            commit: option_env!("CUZK_COMMIT"),
            system: system::os(root),
            processor: system::processor(root),
        }
    }
}

fn driver(answer: Answer) -> String {
    match answer {
        Answer::NoProgram => "none".to_owned(),
        Answer::Failed(problem) => format!("it does not answer: {problem}"),
        Answer::Gpus(gpus) => match gpus.first() {
            Some(gpu) => format!("{}, {} GPU(s)", gpu.driver, gpus.len()),
            None => "there, without a GPU".to_owned(),
        },
    }
}

fn text(report: &VersionReport) -> String {
    let or_none = |list: &[&str]| match list.is_empty() {
        true => "none; without cuda it proves on the CPU".to_owned(),
        false => list.join(", "),
    };
    let unknown = || "unknown".to_owned();
    let lines = [
        ("cuzk", report.version.to_owned()),
        ("features", or_none(&report.features)),
        ("kernels", report.kernels.join(", ")),
        ("gpu driver", report.gpu_driver.clone()),
        ("build", format!("{}, {}", report.target, report.profile)),
        ("commit", report.commit.unwrap_or("unknown").to_owned()),
        ("system", report.system.clone().unwrap_or_else(unknown)),
        (
            "processor",
            report.processor.clone().unwrap_or_else(unknown),
        ),
    ];
    let lines = lines.map(|(name, value)| format!("{name:<11} {value}"));
    lines.join("\n")
}
