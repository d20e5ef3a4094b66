//! `cuzk config init`: a configuration for this machine, with every key explained.
//!
//! The text is `configs/default.toml`, in which the values that this machine suggests are
//! changed. The invariant: the file resolves on this machine.

use std::path::{Path, PathBuf};

use clap::Args;
use cuzk_core::Config;
use cuzk_core::config::Host;
use cuzk_kernels::Isa;
use serde::Serialize;
use supraseal_sys::PROVES_ON_GPU;

use crate::failure::Failure;
use crate::machine::nvidia::{Answer, Gpu, ask};
use crate::output::{self, shown};
use crate::output_path::OutputPath;

/// Every key with its default and its explanation.
const TEMPLATE: &str = include_str!("../../../data/default.toml");

/// A card with less memory has no room for the points of the MSM in G2.
const LARGE_GPU_MIB: u64 = 20 << 10;

const GIB: u64 = 1 << 30;

#[derive(Debug, Args)]
pub(crate) struct ConfigInit {
    /// Write the configuration into FILE, which must not exist, instead of printing it.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A value that this machine suggests.
#[derive(Debug, PartialEq, Serialize)]
struct Choice {
    section: &'static str,
    key: &'static str,
    /// The value, as the file has it.
    value: String,
    reason: String,
}

impl Choice {
    fn new(
        (section, key): (&'static str, &'static str),
        value: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            section,
            key,
            value: value.into(),
            reason: reason.into(),
        }
    }
}

#[derive(Debug, Serialize)]
struct InitReport {
    toml: String,
    choices: Vec<Choice>,
}

pub(super) fn run(args: &ConfigInit, json: bool) -> Result<(), Failure> {
    let out = args.out.as_deref().map(new_file).transpose()?;
    let gpus = match ask() {
        Answer::Gpus(gpus) if PROVES_ON_GPU => gpus,
        _ => Vec::new(),
    };
    let host = Host::detect();
    let choices = choices(&host, &gpus);
    let toml = applied(TEMPLATE, &choices);
    Config::parse(&toml, "of this machine", &host)?;
    if let Some(out) = &out {
        out.write(toml.as_bytes())?;
    }
    let report = InitReport { toml, choices };
    let is_stdout = out.as_ref().is_some_and(OutputPath::is_stdout);
    output::print_beside(is_stdout, json, &report, |report| match &args.out {
        Some(out) => summary(out, report),
        None => report.toml.trim_end().to_owned(),
    })
}

/// Returns the place of the file. A file that is there may have been edited.
fn new_file(path: &Path) -> Result<OutputPath, Failure> {
    let out = OutputPath::new(path)?;
    match out.file().is_some_and(Path::exists) {
        true => Err(Failure::input(format!(
            "{} is there already; name another file, or move it away",
            shown(path)
        ))),
        false => Ok(out),
    }
}

fn summary(out: &Path, report: &InitReport) -> String {
    let lines = report.choices.iter().map(|choice| {
        let Choice {
            section,
            key,
            value,
            reason,
        } = choice;
        format!("[{section}] {key} = {value}: {reason}")
    });
    lines.chain([shown(out)]).collect::<Vec<_>>().join("\n")
}

/// Returns what this machine suggests. The presets of `configs/presets` are the source.
fn choices(host: &Host, gpus: &[Gpu]) -> Vec<Choice> {
    let memory = host.memory_bytes.map(|bytes| bytes / GIB);
    let mut choices = Vec::new();
    if let Some(cache) = &host.param_cache {
        let value = format!("{:?}", cache.to_string_lossy());
        let reason = "FIL_PROOFS_PARAMETER_CACHE names it now; a service has another environment";
        choices.push(Choice::new(("srs", "param_cache"), value, reason));
    }
    choices.extend(match gpus {
        [] => of_cpu(host.cores, memory.unwrap_or(0)),
        gpus => of_gpus(gpus),
    });
    let isa = Isa::best().name();
    let reason = format!("that is {isa} on this processor");
    choices.push(Choice::new(("cpu", "isa"), "\"auto\"", reason));
    let reason = match memory {
        Some(gib) => format!("that is {gib} GiB on this machine"),
        None => "the machine does not tell its memory; write a size".to_owned(),
    };
    choices.push(Choice::new(("memory", "total_budget"), "\"auto\"", reason));
    choices
}

fn of_cpu(cores: usize, memory_gib: u64) -> Vec<Choice> {
    let why = match PROVES_ON_GPU {
        true => "the driver lists no GPU",
        false => "this build proves on the CPU",
    };
    // Two partitions of 32 GiB, with the parameters beside them.
    let is_large = cores >= 64 && memory_gib >= 256;
    let (workers, reason) = match is_large {
        true => (
            "2",
            "64 cores or more, and memory for two partitions of 32 GiB",
        ),
        false => ("1", "one partition keeps this machine busy"),
    };
    vec![
        Choice::new(("gpus", "devices"), "\"cpu\"", why),
        Choice::new(("synthesis", "partition_workers"), workers, reason),
        Choice::new(("pipeline", "finish_workers"), workers, reason),
    ]
}

fn of_gpus(gpus: &[Gpu]) -> Vec<Choice> {
    let ordinals: Vec<_> = gpus.iter().map(|gpu| gpu.index.to_string()).collect();
    let names: Vec<_> = gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    let smallest_mib = gpus.iter().map(|gpu| gpu.memory_mib).min().unwrap_or(0);
    let is_small = smallest_mib < LARGE_GPU_MIB;
    let count = gpus.len();
    let (workers, preset) = match (count, is_small) {
        (1, true) => (4, "gpu-16gb.toml"),
        (1, false) => (6, "gpu-80gb.toml"),
        _ => (10, "several-gpus.toml"),
    };
    let ahead = if count == 1 && is_small {
        2
    } else {
        count.max(3)
    };
    let finish = if count == 1 && is_small { 2 } else { count };
    let as_preset = format!("as in configs/presets/{preset}");
    let b_g2 = if is_small { "\"cpu\"" } else { "\"auto\"" };
    let points = match is_small {
        true => "its points have no room on a card of less than 20 GiB",
        false => "the points of a 32 GiB PoRep may stay on the card",
    };
    vec![
        Choice::new(
            ("gpus", "devices"),
            format!("[{}]", ordinals.join(", ")),
            names.join(", "),
        ),
        Choice::new(("gpus", "b_g2"), b_g2, points),
        Choice::new(
            ("synthesis", "partition_workers"),
            workers.to_string(),
            &*as_preset,
        ),
        Choice::new(
            ("pipeline", "synthesis_lookahead"),
            ahead.to_string(),
            &*as_preset,
        ),
        Choice::new(
            ("pipeline", "finish_workers"),
            finish.to_string(),
            &*as_preset,
        ),
    ]
}

/// Returns the template with the chosen values, each under its reason.
fn applied(template: &str, choices: &[Choice]) -> String {
    let mut text = String::with_capacity(template.len());
    let mut section = "";
    for line in template.lines() {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            section = name;
        }
        let key = line.trim_start_matches("# ").split_once(" = ");
        let is_it = |choice: &&Choice| {
            choice.section == section && key.is_some_and(|(key, _)| key == choice.key)
        };
        match choices.iter().find(is_it) {
            Some(Choice {
                key, value, reason, ..
            }) => text.push_str(&format!("# Here: {reason}.\n{key} = {value}\n")),
            None => text.push_str(&format!("{line}\n")),
        }
    }
    let before = "# The built-in configuration. Every value below is the default: a file that\n\
                  # leaves a key out, or an empty file, means the same.\n";
    let now = "# Made by `cuzk config init`. A value under a line that begins with \"Here\" was\n\
               # chosen for this machine; every other value is the default.\n";
    text.replacen(before, now, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host {
            name: None,
            cores: 96,
            memory_bytes: Some(512 * GIB),
            cuda: true,
            param_cache: Some("/data/my \"params\"".into()),
            state_dir: None,
        }
    }

    fn gpu(index: u32, memory_mib: u64) -> Gpu {
        Gpu {
            index,
            name: "A GPU".to_owned(),
            memory_mib,
            used_mib: 0,
            compute: "9.0".to_owned(),
            driver: "1".to_owned(),
        }
    }

    /// Every choice is in the file once, and the file resolves to it.
    #[test]
    fn a_file_resolves_for_each_kind_of_machine() {
        let machines: [(&[Gpu], usize); 4] = [
            (&[], 2),
            (&[gpu(0, 16_000)], 4),
            (&[gpu(0, 80_000)], 6),
            (&[gpu(0, 80_000), gpu(1, 80_000)], 10),
        ];
        for (gpus, workers) in machines {
            let choices = choices(&host(), gpus);
            let toml = applied(TEMPLATE, &choices);
            assert_eq!(toml.matches("# Here: ").count(), choices.len(), "{toml}");
            let config = Config::parse(&toml, "init", &host()).unwrap();
            assert_eq!(config.srs.param_cache, Path::new("/data/my \"params\""));
            assert_eq!(config.synthesis.partition_workers, workers, "{gpus:?}");
            assert!(toml.starts_with("# Made by `cuzk config init`"), "{toml}");
        }
    }

    #[test]
    fn a_small_machine_gets_one_worker() {
        let host = Host {
            cores: 2,
            memory_bytes: Some(24 * GIB),
            param_cache: None,
            ..host()
        };
        let toml = applied(TEMPLATE, &choices(&host, &[]));
        let config = Config::parse(&toml, "init", &host).unwrap();
        assert_eq!(config.synthesis.partition_workers, 1);
        assert!(toml.contains("that is 24 GiB on this machine"), "{toml}");
    }
}
