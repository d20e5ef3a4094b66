//! Memory: what the machine and its control groups allow, and what each kind needs.
//!
//! The needs are those that the engine charges, so they need the compiled circuit. Its file
//! announces them, and no row is read. The rows of a file of an earlier version are counted,
//! which takes seconds.

use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use cuzk_core::config::{Devices, address_space_problem, available_memory_bytes};
use cuzk_core::{Config, circuits};
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};
use cuzk_groth16::CircuitSizes;
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
    if let Some(problem) = address_space_problem(config) {
        // Nothing proves, so what proofs need says no more.
        return vec![of_address_space(&problem)];
    }
    let mut findings = vec![of_machine(config, root)];
    // All are read at the same time, so that several take little longer than one.
    let until = Instant::now() + CIRCUITS_TIME;
    let readings: Vec<_> = ids
        .iter()
        .map(|id| (*id, read_needs(config, *id)))
        .collect();
    let each = readings.into_iter().map(|(id, reading)| {
        let left = until.saturating_duration_since(Instant::now());
        let needs = reading.and_then(|needs| {
            let needs = needs.recv_timeout(left);
            needs.unwrap_or(Err(Unknown::Late))
        });
        of_circuit(
            id,
            needs,
            usual_bytes(config, id),
            config.memory.usable_bytes(),
        )
    });
    findings.extend(each);
    findings
}

/// Returns the finding about a limit of the address space (`ulimit -v`) that is too low.
fn of_address_space(problem: &str) -> Finding {
    let (text, advice) = problem.split_once("; ").unwrap_or((problem, ""));
    Finding::error(TOPIC, text, advice)
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
    /// `None` if they are not there.
    params_bytes: Option<u64>,
}

/// The reason why the needs of a circuit are not known.
#[derive(Clone, Debug)]
enum Unknown {
    /// It is not compiled here.
    NotCompiled,
    /// Its file cannot be used, with the error.
    Unusable(String),
    /// Its file was not read in time.
    Late,
}

/// Returns the finding about a circuit.
fn of_circuit(
    id: CircuitId,
    needs: Result<Needs, Unknown>,
    usual_bytes: Option<u64>,
    usable_bytes: u64,
) -> Finding {
    let (text, advice) = match (needs, usual_bytes) {
        (Ok(needs), _) => return judge(&id.to_string(), needs, usable_bytes),
        (Err(Unknown::NotCompiled), Some(usual_bytes)) => {
            return judge_usual(id, usual_bytes, usable_bytes);
        }
        (Err(Unknown::NotCompiled), None) => (
            "its circuit is not compiled here yet".to_owned(),
            compile(id),
        ),
        (Err(Unknown::Unusable(error)), _) => (
            error,
            "the next proof compiles the circuit again and replaces the file".to_owned(),
        ),
        (Err(Unknown::Late), _) => (
            format!(
                "its compiled circuit was not read within {} s",
                CIRCUITS_TIME.as_secs()
            ),
            format!(
                "run `cuzk doctor` again when the machine is less busy; a file of an earlier cuzk \
                 is slow to read, and `cuzk pce build --kind {} --sector-size {}` writes one that \
                 is not",
                id.kind, id.sector_size
            ),
        ),
    };
    let text = format!("{id}: {text}, so the memory that it needs is not known");
    Finding::warning(TOPIC, text, advice)
}

/// Returns what to do about a circuit that is not compiled.
fn compile(id: CircuitId) -> String {
    format!(
        "the first proof compiles it, once for this machine; `cuzk pce build --kind {} \
         --sector-size {}` does so now",
        id.kind, id.sector_size
    )
}

/// Memory of a partition of 32 GiB and of 64 GiB on a CPU with 2 threads, in hundredths of a GiB.
/// The figures are of docs/measured.md, "Memory of a partition". More threads take some more.
const USUAL: [(ProofKind, [u64; 2]); 4] = [
    (ProofKind::WinningPost, [15, 16]),
    (ProofKind::SnapDeals, [1_237, 1_238]),
    (ProofKind::Porep, [1_248, 1_249]),
    (ProofKind::WindowPost, [1_606, 1_620]),
];

/// Returns what a partition of a production circuit usually takes on a CPU, bytes. There is no
/// figure for a machine with GPUs, which hold most of a partition.
fn usual_bytes(config: &Config, id: CircuitId) -> Option<u64> {
    let at = match id.sector_size {
        SectorSize::GiB32 => 0,
        SectorSize::GiB64 => 1,
        _ => return None,
    };
    let (_, hundredths) = USUAL.iter().find(|(kind, _)| *kind == id.kind)?;
    let on_cpu = config.gpus.devices == Devices::Cpu;
    on_cpu.then_some((hundredths[at] << 30) / 100)
}

/// Judges a circuit that is not compiled by what its partitions usually take.
fn judge_usual(id: CircuitId, usual_bytes: u64, usable_bytes: u64) -> Finding {
    let text = format!(
        "{id}: a partition takes about {} GiB on a CPU",
        gib(usual_bytes)
    );
    match usable_bytes / usual_bytes.max(1) {
        0 => Finding::error(TOPIC, text, too_little(usable_bytes)),
        partitions => {
            let fit = fit(partitions);
            let text = format!("{text}, so {fit} at once; its circuit is not compiled here yet");
            Finding::warning(TOPIC, text, compile(id))
        }
    }
}

/// Returns what to do if not even one partition fits.
fn too_little(usable_bytes: u64) -> String {
    format!(
        "{} GiB may be used, which is too little: raise [memory] total_budget, or use a machine \
         with more memory",
        gib(usable_bytes)
    )
}

/// Begins to read what the file of the compiled circuit says.
fn read_needs(config: &Config, id: CircuitId) -> Result<Receiver<Result<Needs, Unknown>>, Unknown> {
    let unusable = |error: &dyn std::fmt::Display| Unknown::Unusable(error.to_string());
    let cache = &config.srs.param_cache;
    let files = circuits::parameter_files(id).map_err(|error| unusable(&error))?;
    let params = ParamCache::new(cache).params_path(&files);
    let params_bytes = params.metadata().ok().map(|metadata| metadata.len());
    let workspace = config.cpu_workspace();
    let on_cpu = config.gpus.devices == Devices::Cpu;
    let (cache, (send, received)) = (cache.clone(), mpsc::channel());
    let look = move || {
        let sizes = sizes(id, &cache)?;
        let share = SynthesisShare {
            threads: workspace.threads,
            evaluates: false,
        };
        Ok(Needs {
            partition_bytes: match on_cpu {
                true => partition_bytes(&sizes, &workspace, &Shapes::default()),
                false => share.footprint(&sizes).peak_bytes,
            },
            circuit_bytes: circuit_bytes(&sizes),
            params_bytes,
        })
    };
    // The receiver is gone if it took too long.
    let named = thread::Builder::new().name("cuzk-doctor".to_owned());
    let thread = named.spawn(move || send.send(look()).ok());
    thread.map_err(|error| unusable(&error))?;
    Ok(received)
}

/// Returns the sizes of a circuit as its file announces them, or as they are counted in the rows
/// of a file that announces none.
fn sizes(id: CircuitId, cache: &Path) -> Result<CircuitSizes, Unknown> {
    let unusable = |error: cuzk_core::Error| Unknown::Unusable(error.to_string());
    let path = circuits::cache_path(id, cache).map_err(unusable)?;
    if !path.exists() {
        return Err(Unknown::NotCompiled);
    }
    let circuit = circuits::open(id, cache).map_err(unusable)?;
    let announced = circuit.announced_sizes();
    Ok(announced.unwrap_or_else(|| circuit.sizes()))
}

/// Says how many partitions fit at once.
fn judge(id: &str, needs: Needs, usable_bytes: u64) -> Finding {
    let each_bytes = needs.partition_bytes.max(1);
    let room_bytes = usable_bytes.saturating_sub(needs.circuit_bytes);
    let params_bytes = needs.params_bytes.unwrap_or(0);
    let beside_params = room_bytes.saturating_sub(params_bytes) / each_bytes;
    let without_params = room_bytes / each_bytes;
    let partition = gib(needs.partition_bytes);
    let params = match needs.params_bytes {
        Some(bytes) => format!("its parameters {} GiB", gib(bytes)),
        None => "its parameters are not there".to_owned(),
    };
    let text = format!("{id}: a partition takes {partition} GiB, {params}");
    if without_params == 0 {
        return Finding::error(TOPIC, text, too_little(usable_bytes));
    }
    if beside_params == 0 {
        let text = format!(
            "{text}; {} at once, but not beside them",
            fit(without_params)
        );
        let advice = "the parameters are read from the disk for every partition: raise [memory] \
                      total_budget, or give the machine more memory";
        return Finding::warning(TOPIC, text, advice);
    }
    let beside = match needs.params_bytes {
        Some(_) => "beside",
        None => "without",
    };
    let text = format!("{text}; {} at once {beside} them", fit(beside_params));
    Finding::ok(TOPIC, text)
}

/// Returns the words for so many partitions that fit.
fn fit(partitions: u64) -> String {
    match partitions {
        1 => "1 partition fits".to_owned(),
        _ => format!("{partitions} partitions fit"),
    }
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

    /// A circuit that is slow to read, or damaged, is not called one that is not compiled.
    #[test]
    fn a_need_that_is_not_known_says_why() {
        let (kind, sector_size) = (ProofKind::WindowPost, SectorSize::KiB2);
        let id = CircuitId { kind, sector_size };
        let damaged = "compiled circuit v28.circuit: its checksum does not hold";
        for (reason, text, advice) in [
            (Unknown::NotCompiled, "not compiled here yet", "first proof"),
            (
                Unknown::Unusable(damaged.to_owned()),
                "its checksum does not hold",
                "replaces the file",
            ),
            (
                Unknown::Late,
                "not read within 3 s",
                "`cuzk pce build --kind window-post --sector-size 2KiB`",
            ),
        ] {
            let found = of_circuit(id, Err(reason), None, 1 << 30);
            assert_eq!(found.level, Level::Warning);
            assert!(found.text.contains(text), "{found:?}");
            assert!(found.text.ends_with("is not known"), "{found:?}");
            assert!(found.advice.unwrap().contains(advice), "{text}");
        }
    }

    /// On the first day no circuit is compiled, and the machine may be too small all the same.
    #[test]
    fn production_circuits_are_judged_before_they_are_compiled() {
        let mut on_cpu = Config::default();
        on_cpu.gpus.devices = Devices::Cpu;
        for kind in ProofKind::ALL {
            for sector_size in [SectorSize::GiB32, SectorSize::GiB64] {
                let id = CircuitId { kind, sector_size };
                let usual_bytes = usual_bytes(&on_cpu, id);
                let found = |usable| of_circuit(id, Err(Unknown::NotCompiled), usual_bytes, usable);
                assert_eq!(found(100 << 20).level, Level::Error);
                let fits = found(33 << 30);
                assert_eq!(fits.level, Level::Warning);
                assert!(fits.text.contains("fit"), "{fits:?}");
                assert!(fits.advice.unwrap().contains("cuzk pce build"));
            }
        }
        let (kind, sector_size) = (ProofKind::Porep, SectorSize::GiB32);
        let id = CircuitId { kind, sector_size };
        let usual = usual_bytes(&on_cpu, id);
        let found = of_circuit(id, Err(Unknown::NotCompiled), usual, 26 << 30);
        let said = "about 12.48 GiB on a CPU, so 2 partitions fit at once";
        assert!(found.text.contains(said), "{found:?}");
        on_cpu.gpus.devices = Devices::Auto;
        assert_eq!(usual_bytes(&on_cpu, id), None);
    }

    /// The page that the figures are of has them.
    #[test]
    fn the_usual_needs_are_those_that_were_measured() {
        let page = include_str!("../../../../docs/measured.md");
        for ((_, hundredths), name) in USUAL.iter().zip([
            "WinningPoSt",
            "SnapDeals",
            "PoRep",
            "WindowPoSt, 2,349 and 2,300 sectors",
        ]) {
            let [small, large] = hundredths.map(|count| count as f64 / 100.0);
            let row = format!("| {name} | {small:.2} GiB | {large:.2} GiB |");
            assert!(page.contains(&row), "{row}");
        }
    }

    #[test]
    fn a_circuit_is_judged_by_the_partitions_that_fit() {
        let needs = Needs {
            partition_bytes: 14 << 30,
            circuit_bytes: 1 << 30,
            params_bytes: Some(44 << 30),
        };
        let found = |usable_gib: u64| judge("porep-32GiB", needs, usable_gib << 30);
        assert_eq!(found(14).level, Level::Error);
        let tight = found(30);
        assert_eq!(tight.level, Level::Warning);
        assert!(
            tight.text.contains("2 partitions fit at once, but not"),
            "{tight:?}"
        );
        let good = found(88);
        assert_eq!(good.level, Level::Ok);
        let fits = "3 partitions fit at once beside";
        assert!(good.text.contains(fits), "{good:?}");
        let one = found(60);
        assert!(
            one.text.contains("1 partition fits at once beside"),
            "{one:?}"
        );
        let absent = Needs {
            params_bytes: None,
            ..needs
        };
        let absent = judge("porep-32GiB", absent, 60 << 30);
        assert_eq!(absent.level, Level::Ok);
        let said = "are not there; 4 partitions fit at once without them";
        assert!(absent.text.contains(said), "{absent:?}");
    }
}
