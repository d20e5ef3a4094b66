//! Memory: what the machine and its control groups allow, and what each kind needs.
//!
//! The needs are those that the engine charges, so they need the compiled circuit.

use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use cuzk_core::config::{Devices, available_memory_bytes};
use cuzk_core::{Config, circuits};
use cuzk_filecoin::CircuitId;
use cuzk_groth16::backend::SynthesisShare;
use cuzk_groth16::backend::footprint::{circuit_bytes, partition_bytes};
use cuzk_groth16::params::{ParamCache, Shapes};

use super::finding::Finding;
use crate::machine::system::{meminfo_bytes, read};

const TOPIC: &str = "memory";

/// The longest that reading one compiled circuit may take.
const CIRCUIT_TIME: Duration = Duration::from_secs(1);

const GIB: f64 = (1_u64 << 30) as f64;

pub(super) fn examine(config: &Config, ids: &[CircuitId], root: &Path) -> Vec<Finding> {
    let mut findings = vec![of_machine(config, root)];
    let each = ids.iter().map(|id| of_circuit(config, *id));
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

fn of_circuit(config: &Config, id: CircuitId) -> Finding {
    let Some(needs) = needs(config, id) else {
        let text = format!("{id}: its circuit is not compiled here yet, so its need is not known");
        let advice = "the first proof compiles it, once for this machine; `cuzk params verify` \
                      and `cuzk preload` do so, too";
        return Finding::warning(TOPIC, text, advice);
    };
    judge(&id.to_string(), needs, config.memory.usable_bytes())
}

/// Reads the compiled circuit if there is one, for a second at most.
fn needs(config: &Config, id: CircuitId) -> Option<Needs> {
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
    received.recv_timeout(CIRCUIT_TIME).ok()?
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
