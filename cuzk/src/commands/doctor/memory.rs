//! Memory: what the machine and its control groups allow, and what each kind needs.
//!
//! The needs are those that the engine charges, so they need the compiled circuit.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use cuzk_core::config::{Devices, available_memory_bytes};
use cuzk_core::{Config, circuits};
use cuzk_filecoin::CircuitId;
use cuzk_groth16::backend::SynthesisShare;
use cuzk_groth16::backend::footprint::{circuit_bytes, partition_bytes};
use cuzk_groth16::params::{ParamCache, Shapes};

use super::finding::Finding;
use crate::machine::system::{meminfo_bytes, read};

const TOPIC: &str = "memory";

/// The longest that reading all compiled circuits may take.
const CIRCUITS_TIME: Duration = Duration::from_secs(3);

const GIB: f64 = (1_u64 << 30) as f64;

pub(super) fn examine(config: &Config, ids: &[CircuitId], root: &Path) -> Vec<Finding> {
    let mut findings = vec![of_machine(config, root)];
    // All are read at the same time, so that several take little longer than one.
    let until = Instant::now() + CIRCUITS_TIME;
    let readings: Vec<_> = ids
        .iter()
        .map(|id| (*id, read_needs(config, *id)))
        .collect();
    let each = readings.into_iter().map(|(id, needs)| {
        let left = until.saturating_duration_since(Instant::now());
        let needs = needs.map_or(Ok(None), |needs| needs.recv_timeout(left));
        of_circuit(id, needs, config.memory.usable_bytes())
    });
    findings.extend(each);
    findings
}

/// Compares the budget with what the machine has, and with what is free.
fn of_machine(config: &Config, root: &Path) -> Finding {
    let budget_bytes = config.memory.total_budget_bytes;
    let total_bytes = meminfo_bytes(read(root, "proc/meminfo").as_deref(), "MemTotal:");
    judge_machine(budget_bytes, total_bytes, available_memory_bytes())
}

fn judge_machine(budget_bytes: u64, total_bytes: Option<u64>, free_bytes: Option<u64>) -> Finding {
    let budget = gib(budget_bytes);
    let (Some(total_bytes), Some(free_bytes)) = (total_bytes, free_bytes) else {
        let text = format!("the machine does not tell its memory; the budget is {budget} GiB");
        return Finding::warning(TOPIC, text, "set [memory] total_budget");
    };
    let (total, free) = (gib(total_bytes), gib(free_bytes));
    let text = format!("budget {budget} GiB, machine {total} GiB, free {free} GiB");
    if budget_bytes > total_bytes {
        let advice = "lower [memory] total_budget to what the machine has";
        return Finding::error(TOPIC, text, advice);
    }
    if free_bytes < budget_bytes / 2 {
        let advice = "other programs or a control group's limit (memory.max) leave less than \
                      half of the budget: the engine uses what is left when it starts";
        return Finding::warning(TOPIC, text, advice);
    }
    Finding::ok(TOPIC, text)
}

/// The needs of a circuit's partitions, bytes.
#[derive(Clone, Copy, Debug)]
struct Needs {
    partition_bytes: u64,
    circuit_bytes: u64,
    params_bytes: u64,
}

/// Returns the finding about a circuit. Its needs are `None` if it is not compiled, and an error
/// if they did not come in time.
fn of_circuit(
    id: CircuitId,
    needs: Result<Option<Needs>, RecvTimeoutError>,
    usable_bytes: u64,
) -> Finding {
    match needs {
        Ok(Some(needs)) => judge(&id.to_string(), needs, usable_bytes),
        Ok(None) => {
            let text =
                format!("{id}: its circuit is not compiled here yet, so its need is not known");
            let advice = "the first proof compiles it, once for this machine; `cuzk params \
                          verify` and `cuzk preload` do so, too";
            Finding::warning(TOPIC, text, advice)
        }
        Err(_) => {
            let text = format!(
                "{id}: its compiled circuit was not read within {} s, so its need is not known",
                CIRCUITS_TIME.as_secs()
            );
            let advice = "the disk or the processor is busy: run `cuzk doctor` again later";
            Finding::warning(TOPIC, text, advice)
        }
    }
}

/// Begins to read the compiled circuit, if there is one. `None` if that cannot begin.
fn read_needs(config: &Config, id: CircuitId) -> Option<Receiver<Option<Needs>>> {
    let cache = &config.srs.param_cache;
    let files = circuits::parameter_files(id).ok()?;
    let params = ParamCache::new(cache).params_path(&files);
    let params_bytes = params.metadata().map_or(0, |metadata| metadata.len());
    let workspace = config.cpu_workspace();
    let on_cpu = config.gpus.devices == Devices::Cpu;
    let (cache, (send, received)) = (cache.clone(), mpsc::channel());
    let look = move || {
        let circuit = circuits::open(id, &cache).ok()?;
        let share = SynthesisShare {
            threads: workspace.threads,
            evaluates: false,
        };
        Some(Needs {
            partition_bytes: match on_cpu {
                true => partition_bytes(&circuit, &workspace, &Shapes::default()),
                false => share.footprint(&circuit).peak_bytes,
            },
            circuit_bytes: circuit_bytes(&circuit),
            params_bytes,
        })
    };
    // The receiver is gone if it took too long.
    let named = thread::Builder::new().name("cuzk-doctor".to_owned());
    named.spawn(move || send.send(look()).ok()).ok()?;
    Some(received)
}

/// Says how many partitions fit at once.
fn judge(id: &str, needs: Needs, usable_bytes: u64) -> Finding {
    let each_bytes = needs.partition_bytes.max(1);
    let room_bytes = usable_bytes.saturating_sub(needs.circuit_bytes);
    let beside_params = room_bytes.saturating_sub(needs.params_bytes) / each_bytes;
    let without_params = room_bytes / each_bytes;
    let partition = gib(needs.partition_bytes);
    let params = gib(needs.params_bytes);
    let text = format!("{id}: a partition takes {partition} GiB, its parameters {params} GiB");
    if without_params == 0 {
        let advice = format!(
            "{} GiB may be used, which is too little: raise [memory] total_budget, or use a \
             machine with more memory",
            gib(usable_bytes)
        );
        return Finding::error(TOPIC, text, advice);
    }
    if beside_params == 0 {
        let text = format!("{text}; {without_params} fit(s) at once, and not the parameters");
        let advice = "the parameters are read from the disk for every partition: raise [memory] \
                      total_budget, or give the machine more memory";
        return Finding::warning(TOPIC, text, advice);
    }
    let text = format!("{text}; {beside_params} fit(s) at once beside the parameters");
    Finding::ok(TOPIC, text)
}

fn gib(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / GIB)
}

#[cfg(test)]
mod tests {
    use cuzk_filecoin::{ProofKind, SectorSize};

    use super::*;
    use crate::commands::doctor::finding::Level;

    #[test]
    fn a_budget_is_judged_by_what_the_machine_has() {
        let level = |budget, total, free| judge_machine(budget, total, free).level;
        assert_eq!(level(8, Some(10), Some(9)), Level::Ok);
        assert_eq!(level(8, Some(10), Some(3)), Level::Warning);
        assert_eq!(level(11, Some(10), Some(9)), Level::Error);
        assert_eq!(level(8, None, Some(9)), Level::Warning);
    }

    /// A circuit that is slow to read is not called one that is not compiled.
    #[test]
    fn a_need_that_is_not_known_says_why() {
        let (kind, sector_size) = (ProofKind::Porep, SectorSize::GiB32);
        let id = CircuitId { kind, sector_size };
        let absent = of_circuit(id, Ok(None), 1 << 30);
        assert!(absent.text.contains("not compiled"), "{absent:?}");
        for error in [RecvTimeoutError::Timeout, RecvTimeoutError::Disconnected] {
            let slow = of_circuit(id, Err(error), 1 << 30);
            assert!(slow.text.contains("not read within 3 s"), "{slow:?}");
            assert_eq!(slow.level, Level::Warning);
        }
    }

    #[test]
    fn a_circuit_is_judged_by_the_partitions_that_fit() {
        let needs = Needs {
            partition_bytes: 14 << 30,
            circuit_bytes: 1 << 30,
            params_bytes: 44 << 30,
        };
        let found = |usable_gib: u64| judge("porep-32GiB", needs, usable_gib << 30);
        assert_eq!(found(14).level, Level::Error);
        let tight = found(30);
        assert_eq!(tight.level, Level::Warning);
        assert!(
            tight.text.contains("2 fit(s) at once, and not"),
            "{tight:?}"
        );
        let good = found(88);
        assert_eq!(good.level, Level::Ok);
        assert!(good.text.contains("3 fit(s) at once beside"), "{good:?}");
    }
}
