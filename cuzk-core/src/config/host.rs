//! The machine as far as the configuration depends on it.
//!
//! The one place of this crate that reads environment variables of the engine's.
//! Everything else gets a [`Host`] by value, so tests describe the machine they need.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use supraseal_sys::PROVES_ON_GPU;

use super::address_space::{AddressSpace, Threads};
use super::meminfo::line_bytes;
use super::resolved::Config;

/// The environment variable that names the parameter cache, as the proofs
/// libraries read it.
pub const PARAM_CACHE_VARIABLE: &str = "FIL_PROOFS_PARAMETER_CACHE";

/// The environment variable that limits the arenas of glibc's allocator.
const ARENAS_VARIABLE: &str = "MALLOC_ARENA_MAX";

/// The machine as far as a configuration depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory that this process may use, bytes; `None` where it cannot be read.
    pub memory_bytes: Option<u64>,
    /// True if this build proves on CUDA devices.
    pub cuda: bool,
    /// The value of [`PARAM_CACHE_VARIABLE`], unless unset or empty.
    pub param_cache: Option<PathBuf>,
    /// The folder in which a daemon keeps its state, unless the environment names none.
    pub state_dir: Option<PathBuf>,
    /// The name of the machine; `None` where it cannot be read.
    pub name: Option<String>,
}

impl Host {
    /// The machine and environment of this process.
    #[must_use]
    pub fn detect() -> Self {
        Self {
            cores: cores(),
            memory_bytes: memory_limit_bytes(Path::new("/")),
            cuda: PROVES_ON_GPU,
            param_cache: variable(PARAM_CACHE_VARIABLE),
            state_dir: state_dir(variable),
            name: name(Path::new("/")),
        }
    }
}

fn variable(name: &str) -> Option<PathBuf> {
    // Any name of a folder: one that was set and is not used would be elsewhere, silently.
    let path = env::var_os(name).filter(|path| !path.is_empty());
    path.map(PathBuf::from)
}

/// Returns the folder of systemd's service, else that of the user. `variable` reads the
/// environment.
fn state_dir(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(list) = variable("STATE_DIRECTORY") {
        // A service can have several folders. systemd puts colons between them.
        return env::split_paths(&list).find(|path| path.is_absolute());
    }
    // The specification of these folders ignores relative paths.
    let of_user = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let home = || Some(variable("HOME")?.join(".local/state"));
    Some(of_user.or_else(home)?.join("cuzk"))
}

/// Returns the name of the machine, read below `root`.
fn name(root: &Path) -> Option<String> {
    let text = fs::read_to_string(root.join("proc/sys/kernel/hostname")).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

/// How many hardware queues CUDA gives the streams of a device; eight where it is unset.
const DEVICE_QUEUES_VARIABLE: &str = "CUDA_DEVICE_MAX_CONNECTIONS";

/// The four streams that an engine has on a device, and CUDA's own.
const DEVICE_QUEUES_MIN: i64 = 5;

/// Returns what is wrong with the number of hardware queues that this process's environment
/// leaves to a device, and what to do about it. Returns `None` if they are enough.
pub(crate) fn device_queues_problem() -> Option<String> {
    few_queues(env::var_os(DEVICE_QUEUES_VARIABLE).as_deref())
}

fn few_queues(variable: Option<&OsStr>) -> Option<String> {
    // What is no number is not for this to judge.
    let queues: i64 = variable?.to_str()?.trim().parse().ok()?;
    (queues < DEVICE_QUEUES_MIN).then(|| {
        format!(
            "{DEVICE_QUEUES_VARIABLE} is {queues}: what should run side by side on a device runs \
             one after the other, and a proof that is cancelled ends later; unset it, or set it \
             to {DEVICE_QUEUES_MIN} or more, and start again"
        )
    })
}

/// Returns the memory that this process can have at this moment, in bytes. The machine, the control
/// groups and the address space each have a limit; this is the least of them.
#[must_use]
pub fn available_memory_bytes() -> Option<u64> {
    available_bytes(Path::new("/"))
}

fn available_bytes(root: &Path) -> Option<u64> {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).ok();
    let left_bytes = meminfo.and_then(|meminfo| line_bytes(&meminfo, "MemAvailable:"));
    let both = [left_bytes, memory_limit_bytes(root)];
    both.into_iter().flatten().min()
}

/// Returns what is wrong with the limit of this process's address space (`ulimit -v`) for an
/// engine of this configuration, and what to do about it. Returns `None` without a limit, and if
/// it is high enough.
#[must_use]
pub fn address_space_problem(config: &Config) -> Option<String> {
    let threads = threads(config.synthesis.threads, config.gpus.gpu_threads);
    AddressSpace::read(Path::new("/"))?.problem(threads)
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the threads of an engine on this machine.
fn threads(synthesis: usize, gpu: usize) -> Threads {
    let count = |number| u64::try_from(number).unwrap_or(u64::MAX);
    let arenas = env::var(ARENAS_VARIABLE).ok();
    Threads {
        synthesis: count(synthesis),
        gpu: count(gpu),
        cores: count(cores()),
        // The allocator ignores 0.
        arenas_max: arenas
            .and_then(|text| text.parse().ok())
            .filter(|&max| max > 0),
    }
}

/// The least of the machine's memory and of what this process's limits leave, read below
/// `root`. The limits are those of its control groups (version 1 or 2, and all their parents)
/// and that of its address space.
fn memory_limit_bytes(root: &Path) -> Option<u64> {
    let read = |path: &Path| fs::read_to_string(root.join(path)).ok();
    let meminfo = read(Path::new("proc/meminfo"))?;
    let total_bytes = line_bytes(&meminfo, "MemTotal:")?;
    let groups = read(Path::new("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().flat_map(|line| {
        // A line is `hierarchy:controllers:/path`.
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next(), fields.next(), fields.next());
        let (mount, file) = match controllers {
            Some("") => ("sys/fs/cgroup", "memory.max"),
            Some(list) if list.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return Vec::new(),
        };
        let path = Path::new(path.unwrap_or_default().trim_start_matches('/'));
        // Inside a container the path may be the host's; the mount's own root
        // is always among the ancestors.
        path.ancestors()
            .filter_map(|group| read(&Path::new(mount).join(group).join(file)))
            .filter_map(|limit| limit.trim().parse::<u64>().ok())
            .filter(|&limit| limit > 0)
            .collect()
    });
    let cores = cores();
    let address_space =
        AddressSpace::read(root).map(|space| space.budget_bytes(threads(cores, cores)));
    limits.chain(address_space).chain([total_bytes]).min()
}

#[cfg(test)]
mod tests {
    use cuzk_testing::folder_of as root;

    use super::*;

    #[test]
    fn the_state_folder_is_the_services_and_else_the_users() {
        let in_environment = |set: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = set.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| PathBuf::from(value))
            };
            state_dir(variable).map(|path| path.display().to_string())
        };
        let home = ("HOME", "/home/a");
        let xdg = ("XDG_STATE_HOME", "/state");
        for (set, expected) in [
            (&[][..], None),
            (&[home], Some("/home/a/.local/state/cuzk")),
            (
                &[home, ("XDG_STATE_HOME", "state")],
                Some("/home/a/.local/state/cuzk"),
            ),
            (&[home, xdg], Some("/state/cuzk")),
            (
                &[home, xdg, ("STATE_DIRECTORY", "/var/lib/cuzk:/b")],
                Some("/var/lib/cuzk"),
            ),
        ] {
            assert_eq!(in_environment(set).as_deref(), expected, "{set:?}");
        }
    }

    fn machine(files: &[(&str, &str)]) -> Option<u64> {
        memory_limit_bytes(root(files).path())
    }

    #[test]
    fn a_machine_has_the_name_of_its_host() {
        let read = |files: &[_]| name(root(files).path());
        let file = "proc/sys/kernel/hostname";
        assert_eq!(read(&[(file, "prover-7\n")]).as_deref(), Some("prover-7"));
        assert_eq!(read(&[(file, "\n")]), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn too_few_queues_for_a_devices_streams_are_told() {
        let told = |variable: &str| few_queues(Some(OsStr::new(variable)));
        for few in ["1", "4", " 4 ", "0", "-1"] {
            let problem = told(few).unwrap();
            let is = format!("{DEVICE_QUEUES_VARIABLE} is {}:", few.trim());
            assert!(problem.starts_with(&is), "{problem}");
            assert!(problem.contains("set it to 5 or more"), "{problem}");
        }
        for enough in ["5", "8", "32", "", "eight"] {
            assert_eq!(told(enough), None, "{enough:?}");
        }
        assert_eq!(few_queues(None), None);
    }

    #[test]
    fn what_is_available_is_within_the_control_groups() {
        let meminfo = ("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable:   9 kB\n");
        let group = ("proc/self/cgroup", "0::/a\n");
        let available = |files: &[_]| available_bytes(root(files).path());
        assert_eq!(available(&[meminfo, group]), Some(9 * 1024));
        let limit = |bytes| ("sys/fs/cgroup/a/memory.max", bytes);
        assert_eq!(available(&[meminfo, group, limit("5000\n")]), Some(5000));
        assert_eq!(available(&[meminfo, group, limit("max\n")]), Some(9 * 1024));
        assert_eq!(available(&[MEMINFO]), Some(1_024_000));
        assert_eq!(available(&[]), None);
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 10 kB\n");

    const ADDRESS_SPACE: (&str, &str) = (
        "proc/self/limits",
        "Limit      Soft Limit  Hard Limit  Units\nMax address space  3000  unlimited  bytes\n",
    );
    const NO_ADDRESS_SPACE: (&str, &str) = (
        "proc/self/limits",
        "Max address space         unlimited            unlimited            bytes\n",
    );

    #[test]
    fn memory_is_the_least_of_machine_and_control_groups() {
        let v2 = ("proc/self/cgroup", "0::/a/b\n");
        let v1 = ("proc/self/cgroup", "4:memory:/x\n0::/\n");
        type Files<'a> = &'a [(&'a str, &'a str)];
        let cases: &[(Files<'_>, Option<u64>)] = &[
            (&[], None),
            (&[("proc/meminfo", "nothing of use\n")], None),
            (&[MEMINFO], Some(1_024_000)),
            // No thread has room in 3,000 bytes. The tests of the address space have other cases.
            (&[MEMINFO, ADDRESS_SPACE], Some(1)),
            (&[MEMINFO, NO_ADDRESS_SPACE], Some(1_024_000)),
            (
                &[MEMINFO, v2, ("sys/fs/cgroup/a/b/memory.max", "max\n")],
                Some(1_024_000),
            ),
            (
                &[MEMINFO, v2, ("sys/fs/cgroup/a/b/memory.max", "5000\n")],
                Some(5000),
            ),
            (
                &[MEMINFO, v2, ("sys/fs/cgroup/a/memory.max", "4000\n")],
                Some(4000),
            ),
            (
                &[MEMINFO, v2, ("sys/fs/cgroup/memory.max", "9999999999\n")],
                Some(1_024_000),
            ),
            (
                &[
                    MEMINFO,
                    v1,
                    ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "7\n"),
                ],
                Some(7),
            ),
            (
                &[
                    MEMINFO,
                    v1,
                    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "8\n"),
                ],
                Some(8),
            ),
        ];
        for (files, expected) in cases {
            assert_eq!(machine(files), *expected, "{files:?}");
        }
    }
}
