//! The operating system: huge pages and limits.

use std::path::Path;

use cuzk_core::Config;
use cuzk_core::config::Devices;

use super::finding::Finding;
use crate::machine::system::{chosen, read, soft_limit};

/// Files of parameters, sockets and calls at once.
const OPEN_FILES_MIN: u64 = 1024;

/// Threads of an engine besides its pools.
const OTHER_THREADS: u64 = 64;

/// Locked memory below which a driver may refuse pinned memory.
const LOCKED_BYTES_MIN: u64 = 64 << 20;

pub(super) fn examine(config: &Config, root: &Path) -> Vec<Finding> {
    let mut findings = vec![huge_pages(root)];
    let limits = read(root, "proc/self/limits").unwrap_or_default();
    findings.push(open_files(&limits));
    findings.push(processes(&limits, config));
    if config.gpus.devices != Devices::Cpu {
        findings.push(locked_memory(&limits));
    }
    findings
}

fn huge_pages(root: &Path) -> Finding {
    const TOPIC: &str = "huge pages";
    const FILE: &str = "sys/kernel/mm/transparent_hugepage/enabled";
    let text = read(root, FILE).unwrap_or_default();
    match chosen(&text) {
        Some("always") => Finding::ok(TOPIC, "always"),
        Some("madvise") => Finding::ok(TOPIC, "madvise: where the engine asks for them"),
        Some(word) => {
            let advice =
                format!("vectors of gigabytes then take many page faults: echo madvise > /{FILE}");
            let text = format!("{word}: the kernel grants none");
            Finding::warning(TOPIC, text, advice)
        }
        None => {
            let text = format!("/{FILE} cannot be read");
            Finding::warning(TOPIC, text, "without huge pages, proofs take longer")
        }
    }
}

fn open_files(limits: &str) -> Finding {
    const TOPIC: &str = "open files";
    match soft_limit(limits, "Max open files") {
        Some(limit) if limit < OPEN_FILES_MIN => {
            let advice = "a daemon with many calls needs more: raise it (ulimit -n, or \
                          LimitNOFILE= of the service)";
            Finding::warning(TOPIC, format!("at most {limit}"), advice)
        }
        Some(u64::MAX) => Finding::ok(TOPIC, "no limit"),
        Some(limit) => Finding::ok(TOPIC, format!("at most {limit}")),
        None => unknown(TOPIC),
    }
}

/// Returns the most threads that an engine of this configuration has.
pub(super) fn threads_needed(config: &Config) -> u64 {
    let pools = [config.synthesis.threads, config.gpus.gpu_threads];
    let pools: u64 = pools.iter().map(|&threads| threads as u64).sum();
    // The dedicated workers have pools of their own.
    3 * pools + OTHER_THREADS
}

fn processes(limits: &str, config: &Config) -> Finding {
    const TOPIC: &str = "threads";
    let needed = threads_needed(config);
    match soft_limit(limits, "Max processes") {
        Some(limit) if limit < needed => {
            let text = format!("at most {limit}, and this configuration uses up to {needed}");
            let advice = "raise it (ulimit -u, or LimitNPROC= and TasksMax= of the service), or \
                          lower [synthesis] threads";
            Finding::error(TOPIC, text, advice)
        }
        Some(u64::MAX) => Finding::ok(TOPIC, format!("uses up to {needed}; no limit")),
        Some(limit) => Finding::ok(TOPIC, format!("uses up to {needed} of at most {limit}")),
        None => unknown(TOPIC),
    }
}

fn locked_memory(limits: &str) -> Finding {
    const TOPIC: &str = "locked memory";
    match soft_limit(limits, "Max locked memory") {
        Some(limit) if limit < LOCKED_BYTES_MIN => {
            let text = format!("at most {} KiB", limit >> 10);
            let advice = "a GPU's transfers need pinned memory: raise it (ulimit -l, or \
                          LimitMEMLOCK= of the service)";
            Finding::warning(TOPIC, text, advice)
        }
        Some(u64::MAX) => Finding::ok(TOPIC, "no limit"),
        Some(limit) => Finding::ok(TOPIC, format!("at most {} MiB", limit >> 20)),
        None => unknown(TOPIC),
    }
}

fn unknown(topic: &'static str) -> Finding {
    let text = "/proc/self/limits does not say it";
    Finding::warning(topic, text, "look at `ulimit -a`")
}

#[cfg(test)]
mod tests {
    use cuzk_testing::folder_of as root;

    use super::super::finding::Level;
    use super::*;

    #[test]
    fn huge_pages_are_good_always_or_on_request() {
        const FILE: &str = "sys/kernel/mm/transparent_hugepage/enabled";
        let level = |text: &str| huge_pages(root(&[(FILE, text)]).path()).level;
        assert_eq!(level("[always] madvise never\n"), Level::Ok);
        assert_eq!(level("always [madvise] never\n"), Level::Ok);
        assert_eq!(level("always madvise [never]\n"), Level::Warning);
        assert_eq!(huge_pages(root(&[]).path()).level, Level::Warning);
    }

    #[test]
    fn limits_that_are_too_low_are_told() {
        let config = Config::default();
        let limits = |files: &str, processes: &str, locked: &str| {
            format!(
                "Max open files {files} 1 files\nMax processes {processes} 1 processes\n\
                 Max locked memory {locked} 1 bytes\n"
            )
        };
        let levels = |limits: &str| {
            [
                open_files(limits),
                processes(limits, &config),
                locked_memory(limits),
            ]
            .map(|found| found.level)
        };
        let good = limits("1048576", "unlimited", "unlimited");
        assert_eq!(levels(&good), [Level::Ok; 3]);
        let bad = limits("256", "10", "65536");
        assert_eq!(levels(&bad), [Level::Warning, Level::Error, Level::Warning]);
        assert_eq!(levels(""), [Level::Warning; 3]);
    }
}
