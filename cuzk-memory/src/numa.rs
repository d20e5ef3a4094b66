//! The memory nodes of a machine, and pages that are spread over them.
//!
//! All threads use a partition's vectors. On a machine with several nodes, the pages of a vector
//! would be on the nodes of the threads that touch it first. Then one node's memory may serve
//! all cores. So the pages take turns over the nodes.
//!
//! An MSM's buckets lie where a vector was, and so they take turns as well. The heap, which has
//! what threads keep for themselves, stays as the system places it. The invariants:
//!
//! * Placement is advice: without it everything works the same.
//! * Only nodes are used whose memory and cores this process may use. A policy that somebody
//!   gave the process, as by `numactl`, stays.
#![allow(unsafe_code)] // Calls the system, which no library does for it.

use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

/// As many nodes as Linux can have.
const NODES_MAX: usize = 1024;

const WORD_BITS: usize = u64::BITS as usize;

/// A set of memory nodes, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nodes([u64; NODES_MAX / WORD_BITS]);

impl Nodes {
    const NONE: Self = Self([0; NODES_MAX / WORD_BITS]);

    /// Returns the nodes of this machine, if a policy of this process does not decide already.
    fn of_this_process() -> Self {
        match has_policy() {
            true => Self::NONE,
            false => Self::read(Path::new("/")).unwrap_or(Self::NONE),
        }
    }

    /// Returns the nodes with memory and cores that this process may use. The files `proc` and
    /// `sys` of the system are under `root`.
    pub(crate) fn read(root: &Path) -> Option<Self> {
        let status = std::fs::read_to_string(root.join("proc/self/status")).ok()?;
        let list = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            ranges(line?.strip_prefix(':')?)
        };
        let (cores, memory) = (list("Cpus_allowed_list")?, list("Mems_allowed_list")?);
        let mut nodes = Self::NONE;
        for node in memory.into_iter().flatten().take(NODES_MAX) {
            let path = root.join(format!("sys/devices/system/node/node{node}/cpulist"));
            let Some(of_node) = std::fs::read_to_string(path)
                .ok()
                .and_then(|list| ranges(&list))
            else {
                continue;
            };
            let meet = |a: &RangeInclusive<usize>, b: &RangeInclusive<usize>| {
                a.start() <= b.end() && b.start() <= a.end()
            };
            if of_node.iter().any(|a| cores.iter().any(|b| meet(a, b))) {
                nodes.add(node);
            }
        }
        Some(nodes)
    }

    fn add(&mut self, node: usize) {
        if let Some(word) = self.0.get_mut(node / WORD_BITS) {
            *word |= 1 << (node % WORD_BITS);
        }
    }

    pub(crate) fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

/// Parses a list such as `0-3,8`.
fn ranges(list: &str) -> Option<Vec<RangeInclusive<usize>>> {
    let parts = list.trim().split(',').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse().ok()?..=last.parse().ok()?)
        })
        .collect()
}

/// Spreads the pages of a mapping over the nodes, if there are several.
pub(crate) fn spread(mapping: &mut [u8]) {
    static NODES: OnceLock<Nodes> = OnceLock::new();
    let nodes = NODES.get_or_init(Nodes::of_this_process);
    if nodes.count() > 1 {
        // Advice only: without it everything works the same.
        interleave(mapping, nodes).ok();
    }
}

/// Lets the pages of a mapping that are not touched yet take turns over `nodes`.
pub(crate) fn interleave(mapping: &mut [u8], nodes: &Nodes) -> io::Result<()> {
    // The system reads one bit less than it is told.
    let bits = NODES_MAX + 1;
    // SAFETY: the range is a mapping of the caller's, of which no byte changes: the call says
    // where pages come from. The mask is as long as the system is told.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            mapping.as_mut_ptr(),
            mapping.len(),
            libc::MPOL_INTERLEAVE,
            nodes.0.as_ptr(),
            bits,
            0,
        )
    };
    match failed {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns true if somebody said from which nodes this process has its memory.
fn has_policy() -> bool {
    let mut mode: libc::c_int = libc::MPOL_DEFAULT;
    let none = ptr::null_mut::<libc::c_ulong>();
    // SAFETY: the system writes the mode, which is there, and no mask and no address, whose
    // pointers are null.
    let failed = unsafe { libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, none, 0, none, 0) };
    // A system that does not answer has no nodes to choose from.
    failed != 0 || mode != libc::MPOL_DEFAULT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(allowed: [&str; 2], nodes: &[(usize, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let [cores, memory] = allowed;
        let status = format!("Cpus_allowed_list:\t{cores}\nMems_allowed_list:\t{memory}\n");
        write("proc/self/status", &status);
        for (node, cores) in nodes {
            let path = format!("sys/devices/system/node/node{node}/cpulist");
            write(&path, &format!("{cores}\n"));
        }
        root
    }

    fn set(nodes: &[usize]) -> Nodes {
        let mut set = Nodes::NONE;
        nodes.iter().for_each(|node| set.add(*node));
        set
    }

    #[test]
    fn nodes_have_memory_and_cores_that_the_process_may_use() {
        let two = [(0, "0-15,32-47"), (1, "16-31,48-63")];
        for (allowed, nodes, expected) in [
            (["0-63", "0-1"], &two[..], &[0, 1][..]),
            // Pinned to the cores of one node, or to its memory.
            (["16-20", "0-1"], &two, &[1]),
            (["15,16", "0-1"], &two, &[0, 1]),
            (["0-63", "1"], &two, &[1]),
            // A node of memory alone has no cores.
            (["0-63", "0-2"], &[two[0], two[1], (2, "")], &[0, 1]),
            // More nodes than there are files, and more than Linux can have.
            (["0-63", "0-2000"], &two, &[0, 1]),
            (["0-1", "1023,1024"], &[(1023, "0"), (1024, "1")], &[1023]),
        ] {
            let machine = machine(allowed, nodes);
            let read = Nodes::read(machine.path()).unwrap();
            assert_eq!(read, set(expected), "{allowed:?}");
            assert_eq!(read.count() as usize, expected.len());
        }
        for damaged in [["", "x"], ["0-", "0"], ["a-b", "0"]] {
            let machine = machine(damaged, &two);
            assert_eq!(Nodes::read(machine.path()), None, "{damaged:?}");
        }
        assert_eq!(Nodes::read(tempfile::tempdir().unwrap().path()), None);
    }

    /// Returns the policy of a mapping, as the system states it.
    fn policy_at(address: usize) -> Option<String> {
        let maps = std::fs::read_to_string("/proc/self/numa_maps").ok()?;
        let line = maps
            .lines()
            .find(|line| line.starts_with(&format!("{address:x} ")))?;
        line.split(' ').nth(1).map(str::to_owned)
    }

    #[test]
    fn pages_of_a_mapping_take_turns_over_the_nodes() {
        let mut map = memmap2::MmapMut::map_anon(1 << 20).unwrap();
        // Where the system has no nodes there is nothing to see.
        if let Ok(()) = interleave(&mut map, &set(&[0])) {
            let policy = policy_at(map.as_ptr() as usize).unwrap();
            assert_eq!(policy, "interleave:0");
        }
        map.fill(7);
        assert!(map.iter().all(|byte| *byte == 7));
        assert!(interleave(&mut map, &Nodes::NONE).is_err());
    }
}
