//! The limits of the control groups that this process is in: memory, tasks and processor time.
//!
//! Containers and services have their limits there, and not in `ulimit`. Both versions of
//! control groups are read, with all parents of the group. The invariant: a limit that is not
//! there has no line of its own.

use std::path::Path;

use cuzk_core::Config;

use super::finding::Finding;
use super::system::threads_needed;
use crate::machine::system::read;

const TOPIC: &str = "control group";

const GIB: f64 = (1_u64 << 30) as f64;

/// The microseconds of a period, where a group of version 1 does not say them.
const PERIOD_US: f64 = 100e3;

pub(super) fn examine(config: &Config, root: &Path) -> Vec<Finding> {
    let threads = config.synthesis.threads.max(config.gpus.gpu_threads);
    let limits = Limits::read(root);
    let mut findings = Vec::new();
    let budget_bytes = config.memory.total_budget_bytes;
    findings.extend(limits.memory_bytes.map(|bytes| memory(bytes, budget_bytes)));
    findings.extend(limits.tasks.map(|most| tasks(most, threads_needed(config))));
    findings.extend(limits.cores.map(|most| cores(most, threads)));
    if findings.is_empty() {
        findings.push(Finding::ok(
            TOPIC,
            "no limit of memory, tasks or processor time",
        ));
    }
    findings
}

/// The least limit of each kind.
#[derive(Debug, Default, PartialEq)]
struct Limits {
    memory_bytes: Option<u64>,
    tasks: Option<u64>,
    cores: Option<f64>,
}

impl Limits {
    /// Reads the limits below `root`.
    fn read(root: &Path) -> Self {
        let groups = read(root, "proc/self/cgroup").unwrap_or_default();
        let mut limits = Self::default();
        // A line is `hierarchy:controllers:/path`. Version 2 has no controllers in it.
        for line in groups.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
                continue;
            };
            let path = Path::new(path.trim_start_matches('/'));
            for group in path.ancestors() {
                limits.add(root, controllers, group);
            }
        }
        limits
    }

    /// Adds the limits of one group.
    fn add(&mut self, root: &Path, controllers: &str, group: &Path) {
        let has = |name: &str| controllers.split(',').any(|listed| listed == name);
        let file = |folder: &str, name: &str| {
            let path = Path::new("sys/fs/cgroup").join(folder).join(group);
            read(root, path.join(name).to_str()?)
        };
        let number = |text: Option<String>| text?.trim().parse::<u64>().ok();
        if controllers.is_empty() {
            self.memory(number(file("", "memory.max")));
            self.tasks(number(file("", "pids.max")));
            self.cores(file("", "cpu.max").and_then(|text| quota(&text)));
        }
        if has("memory") {
            // Without a limit it is a number beyond any memory.
            let limit = number(file("memory", "memory.limit_in_bytes"));
            self.memory(limit.filter(|&bytes| bytes < 1 << 60));
        }
        if has("pids") {
            self.tasks(number(file("pids", "pids.max")));
        }
        if has("cpu") {
            let us = number(file(controllers, "cpu.cfs_quota_us"));
            let period = number(file(controllers, "cpu.cfs_period_us"));
            let period = period.map_or(PERIOD_US, |us| us as f64);
            self.cores(us.map(|us| us as f64 / period));
        }
    }

    fn memory(&mut self, bytes: Option<u64>) {
        self.memory_bytes = self.memory_bytes.into_iter().chain(bytes).min();
    }

    fn tasks(&mut self, most: Option<u64>) {
        self.tasks = self.tasks.into_iter().chain(most).min();
    }

    fn cores(&mut self, most: Option<f64>) {
        self.cores = self.cores.into_iter().chain(most).reduce(f64::min);
    }
}

/// Reads a quota of version 2, such as `200000 100000`: two cores.
fn quota(text: &str) -> Option<f64> {
    let mut numbers = text.split_whitespace();
    let quota: f64 = numbers.next()?.parse().ok()?;
    let period: f64 = numbers.next()?.parse().ok()?;
    Some(quota / period).filter(|cores| cores.is_finite())
}

fn memory(limit_bytes: u64, budget_bytes: u64) -> Finding {
    let gib = |bytes: u64| bytes as f64 / GIB;
    let text = format!("memory: at most {:.2} GiB", gib(limit_bytes));
    if budget_bytes > limit_bytes {
        let text = format!("{text}, and the budget is {:.2} GiB", gib(budget_bytes));
        let advice = "the system ends a process that takes more: lower [memory] total_budget, or \
                      raise the limit (memory.max, MemoryMax= of the service)";
        return Finding::error(TOPIC, text, advice);
    }
    Finding::ok(TOPIC, text)
}

fn tasks(most: u64, needed: u64) -> Finding {
    let text = format!("tasks: at most {most}, and this configuration uses up to {needed}");
    if most < needed {
        let advice = "raise the limit (pids.max, TasksMax= of the service), or lower [synthesis] \
                      threads";
        return Finding::error(TOPIC, text, advice);
    }
    Finding::ok(TOPIC, text)
}

fn cores(most: f64, threads: usize) -> Finding {
    let text = format!("processor time: at most {most:.1} cores");
    // A part of a core still needs a thread of its own.
    if threads as f64 > most.ceil() {
        let text = format!("{text}, for pools of {threads} threads");
        let advice = "the system stops all threads when their time is used up: lower [synthesis] \
                      threads and [gpus] gpu_threads, or raise the limit (cpu.max, CPUQuota=)";
        return Finding::warning(TOPIC, text, advice);
    }
    Finding::ok(TOPIC, text)
}

#[cfg(test)]
mod tests {
    use cuzk_testing::folder_of;

    use super::super::finding::Level::{self, Error, Ok, Warning};
    use super::*;

    const CORES: &str = "sys/fs/cgroup/a/cpu.max";

    fn levels(files: &[(&str, &str)]) -> Vec<Level> {
        let mut config = Config::default();
        config.memory.total_budget_bytes = 8 << 30;
        config.synthesis.threads = 4;
        config.gpus.gpu_threads = 4;
        let group = ("proc/self/cgroup", "0::/a/b\n");
        let root = folder_of(&[&[group][..], files].concat());
        let findings = examine(&config, root.path());
        findings.iter().map(|found| found.level).collect()
    }

    #[test]
    fn each_limit_has_its_line_and_is_compared_with_the_configuration() {
        let memory = |bytes: &'static str| ("sys/fs/cgroup/a/b/memory.max", bytes);
        let tasks = |most: &'static str| ("sys/fs/cgroup/a/b/pids.max", most);
        assert_eq!(levels(&[]), [Ok]);
        assert_eq!(levels(&[memory("max\n"), tasks("max\n")]), [Ok]);
        assert_eq!(levels(&[memory("17179869184\n")]), [Ok]);
        assert_eq!(levels(&[memory("4294967296\n")]), [Error]);
        assert_eq!(levels(&[tasks("4096\n")]), [Ok]);
        assert_eq!(levels(&[tasks("20\n")]), [Error]);
        assert_eq!(levels(&[(CORES, "400000 100000\n")]), [Ok]);
        assert_eq!(levels(&[(CORES, "350000 100000\n")]), [Ok]);
        assert_eq!(levels(&[(CORES, "200000 100000\n")]), [Warning]);
        let all = [memory("1\n"), tasks("1\n"), (CORES, "1000 100000\n")];
        assert_eq!(levels(&all), [Error, Error, Warning]);
    }

    #[test]
    fn the_least_limit_of_a_group_and_its_parents_counts() {
        let root = folder_of(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/memory.max", "500\n"),
            ("sys/fs/cgroup/a/memory.max", "300\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
        ]);
        let expected = Limits {
            memory_bytes: Some(300),
            ..Limits::default()
        };
        assert_eq!(Limits::read(root.path()), expected);
    }

    #[test]
    fn groups_of_version_1_are_read() {
        let root = folder_of(&[
            (
                "proc/self/cgroup",
                "4:memory:/c\n3:pids:/c\n2:cpu,cpuacct:/c\n1:name=systemd:/c\nx\n",
            ),
            ("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "300\n"),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("sys/fs/cgroup/pids/c/pids.max", "70\n"),
            ("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "150000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
        ]);
        let expected = Limits {
            memory_bytes: Some(300),
            tasks: Some(70),
            cores: Some(1.5),
        };
        assert_eq!(Limits::read(root.path()), expected);
    }
}
