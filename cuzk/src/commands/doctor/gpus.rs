//! GPUs: those of the configuration, what the driver says of them, and what else uses them.

use cuzk_core::Config;
use cuzk_core::config::Devices;
use supraseal_sys::PROVES_ON_GPU;

use super::finding::Finding;
use crate::machine::nvidia::{Answer, Gpu, User, ask, users};

const TOPIC: &str = "gpu";

/// Memory that a driver itself may have.
const USED_MIB_MAX: u64 = 1024;

pub(super) fn examine(config: &Config) -> Vec<Finding> {
    judge(&config.gpus.devices, PROVES_ON_GPU, ask(), users)
}

/// `users` returns the programs that use a GPU.
fn judge(
    devices: &Devices,
    proves_on_gpu: bool,
    answer: Answer,
    users: impl Fn(u32) -> Vec<User>,
) -> Vec<Finding> {
    let gpus = match answer {
        Answer::Gpus(gpus) => gpus,
        Answer::NoProgram => return vec![without_driver(devices)],
        Answer::Failed(problem) => {
            let text = format!("the driver does not answer: {problem}");
            let advice = "`nvidia-smi` says more; load the driver, or restart the machine";
            return vec![Finding::error(TOPIC, text, advice)];
        }
    };
    if !proves_on_gpu && gpus.is_empty() {
        return vec![Finding::ok(TOPIC, "none; it proves on the CPU")];
    }
    if !proves_on_gpu {
        let text = format!("{} found, and this build proves on the CPU", gpus.len());
        let advice = "build with the feature cuda (docs/gpus.md) to use them";
        return vec![Finding::warning(TOPIC, text, advice)];
    }
    let mut findings: Vec<_> = missing(devices, &gpus);
    let used = gpus.iter().filter(|gpu| is_used(devices, gpu));
    findings.extend(used.map(|gpu| of_gpu(gpu, &users(gpu.index))));
    if findings.is_empty() {
        findings.push(Finding::ok(TOPIC, "none is used"));
    }
    findings
}

fn without_driver(devices: &Devices) -> Finding {
    match devices {
        Devices::Cpu => Finding::ok(TOPIC, "none; it proves on the CPU"),
        Devices::Auto => {
            let advice = "install NVIDIA's driver if the machine has a GPU; set devices = \"cpu\" \
                          if it has none";
            Finding::warning(TOPIC, "no driver; it proves on the CPU", advice)
        }
        Devices::Ordinals(_) => {
            let advice = "install NVIDIA's driver, or set [gpus] devices to \"cpu\"";
            Finding::error(TOPIC, "no driver, and [gpus] devices names GPUs", advice)
        }
    }
}

/// Returns the GPUs that the configuration names and the driver does not have.
fn missing(devices: &Devices, gpus: &[Gpu]) -> Vec<Finding> {
    let Devices::Ordinals(named) = devices else {
        return Vec::new();
    };
    let is_there = |ordinal: &u32| gpus.iter().any(|gpu| gpu.index == *ordinal);
    let lost = named.iter().filter(|ordinal| !is_there(ordinal));
    let found = |ordinal: &u32| {
        let text = format!(
            "[gpus] devices names {ordinal}, and the driver has {}",
            gpus.len()
        );
        let advice = "name those that `nvidia-smi` lists, or write \"auto\"";
        Finding::error(TOPIC, text, advice)
    };
    lost.map(found).collect()
}

fn is_used(devices: &Devices, gpu: &Gpu) -> bool {
    match devices {
        Devices::Cpu => false,
        Devices::Auto => true,
        Devices::Ordinals(named) => named.contains(&gpu.index),
    }
}

fn of_gpu(gpu: &Gpu, users: &[User]) -> Finding {
    let mut text = format!(
        "{}: {}, {} MiB, compute capability {}, driver {}",
        gpu.index, gpu.name, gpu.memory_mib, gpu.compute, gpu.driver
    );
    for user in users {
        let memory = user.memory_mib.map(|mib| format!(" with {mib} MiB"));
        let memory = memory.unwrap_or_default();
        text.push_str(&format!(
            "; {} (process {}){memory} uses it",
            user.program, user.process
        ));
    }
    if users.iter().any(|user| !is_own(user)) {
        let advice = "end the other programs, or leave them memory with [gpus] memory_limit";
        return Finding::warning(TOPIC, text, advice);
    }
    if users.is_empty() && gpu.used_mib > USED_MIB_MAX {
        let text = format!("{text}; {} MiB are in use", gpu.used_mib);
        let advice = "the driver does not say by whom: look at `nvidia-smi`, and set [gpus] \
                      memory_limit if other programs use the GPU";
        return Finding::warning(TOPIC, text, advice);
    }
    Finding::ok(TOPIC, text)
}

/// Returns true if the program is a cuzk, such as the daemon that is looked at.
fn is_own(user: &User) -> bool {
    user.program.rsplit('/').next() == Some("cuzk")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn gpu(index: u32, used_mib: u64) -> Gpu {
        Gpu {
            index,
            name: "A GPU".to_owned(),
            memory_mib: 16_384,
            used_mib,
            compute: "12.0".to_owned(),
            driver: "570.1".to_owned(),
        }
    }

    #[test]
    fn each_state_of_the_gpus_has_its_line() {
        let named = || Devices::Ordinals(vec![0, 3]);
        let both = || Answer::Gpus(vec![gpu(0, 10), gpu(1, 9000)]);
        let levels = |devices: &Devices, build, answer| {
            let findings = judge(devices, build, answer, |_| Vec::new());
            findings.iter().map(|found| found.level).collect::<Vec<_>>()
        };
        use Level::{Error, Ok, Warning};
        assert_eq!(levels(&Devices::Cpu, false, Answer::NoProgram), [Ok]);
        assert_eq!(levels(&Devices::Auto, true, Answer::NoProgram), [Warning]);
        assert_eq!(levels(&named(), true, Answer::NoProgram), [Error]);
        let failed = Answer::Failed("no devices".to_owned());
        assert_eq!(levels(&Devices::Auto, true, failed), [Error]);
        assert_eq!(levels(&Devices::Cpu, false, both()), [Warning]);
        let none = Answer::Gpus(Vec::new());
        assert_eq!(levels(&Devices::Cpu, false, none), [Ok]);
        assert_eq!(levels(&Devices::Auto, true, both()), [Ok, Warning]);
        assert_eq!(levels(&named(), true, both()), [Error, Ok]);
        assert_eq!(levels(&Devices::Cpu, true, both()), [Ok]);
    }

    #[test]
    fn other_programs_on_a_gpu_are_named() {
        let of = |programs: &[&str], used_mib| {
            let user = |program: &&str| User {
                process: "7".to_owned(),
                program: (*program).to_owned(),
                memory_mib: Some(9000),
            };
            let users: Vec<_> = programs.iter().map(user).collect();
            of_gpu(&gpu(0, used_mib), &users)
        };
        assert_eq!(of(&[], 10).level, Level::Ok);
        assert_eq!(of(&[], 9000).level, Level::Warning);
        let own = of(&["/usr/bin/cuzk"], 9000);
        assert_eq!(own.level, Level::Ok);
        let other = of(&["/usr/bin/cuzk", "miner"], 9000);
        assert_eq!(other.level, Level::Warning);
        let named = "; miner (process 7) with 9000 MiB uses it";
        assert!(other.text.ends_with(named), "{}", other.text);
        // A little memory of another program is told, too.
        assert_eq!(of(&["miner"], 10).level, Level::Warning);
    }
}
