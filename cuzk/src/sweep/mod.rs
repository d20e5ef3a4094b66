//! `cuzk sweep`: the whole engine under c proofs with j in flight, for each arm of the
//! interventions.
//!
//! Each measurement is a process of its own, because gpu_threads and peak memory belong to a
//! process. All settings have their turn in every round, in rotating order. Ratios are taken
//! within a round, so that a slow minute of the machine is slow for all settings.
//!
//! Not a test: nothing here passes or fails by a time. The invariant: a measurement that was
//! interrupted is not in the result.

mod args;
mod arm;
mod drawings;
mod gaps;
mod load;
mod repeated;
mod row;
mod sample;
mod state;
mod table;

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cuzk_core::ProofRequest;
use cuzk_filecoin::{CircuitId, SectorSize, decode};
use cuzk_tune::machine::Host;

pub(crate) use self::args::Sweep;
use self::arm::Setting;
use self::load::{Order, measure};
use self::row::Row;
use self::state::{Measured, State, Subject};
use crate::commands::demo::bundled_request;
use crate::commands::params::ensure_parameters;
use crate::commands::{Context, read_request};
use crate::failure::{Failure, failed};
use crate::interrupt::Interrupt;
use crate::machine::OnMachine;
use crate::output_path::OutputPath;
use crate::{output, progress};

/// The time after which `--short` begins no measurement. One measurement takes less than the
/// minute that then remains of five.
const SHORT: Duration = Duration::from_secs(240);

/// Measures, or is the process of one measurement.
pub(crate) fn run(context: &Context, args: &Sweep) -> Result<(), Failure> {
    if args.child {
        return load::answer(context, args);
    }
    let request = request(args)?;
    let circuit = decode(&request).map_err(cuzk_core::Error::from)?.circuit();
    let asked = CircuitId {
        kind: args.kind,
        sector_size: args.sector_size,
    };
    if circuit != asked {
        let problem = format!(
            "--request: it is of {circuit}, and the sweep of {asked}; give the --kind and the \
             --sector-size of the request"
        );
        return Err(Failure::input(problem));
    }
    let svg = args.svg.as_deref().map(folder).transpose()?;
    ensure_parameters(context, circuit)?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let subject = Subject {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kind: args.kind.to_string(),
        sector_size: args.sector_size.to_string(),
        request: args.request.clone(),
        partitions: args.partitions,
        cores,
        gpu_threads: args.gpu_threads,
        double: args.double,
        config: context.config.to_toml(),
    };
    let state = State::open(args.state.as_deref(), &subject)?;
    let settings = settings(args);
    let state = measure_all(args, &settings, state, svg)?;
    report(context, args, &settings, &state, cores)
}

/// Returns the request that is proved.
fn request(args: &Sweep) -> Result<ProofRequest, Failure> {
    match &args.request {
        Some(path) => read_request(path),
        None if args.sector_size == SectorSize::KiB2 => bundled_request(args.kind),
        None => Err(Failure::input(format!(
            "--sector-size: only 2KiB has a bundled request; name one of {} with --request",
            args.sector_size
        ))),
    }
}

/// Makes the folder of the pictures.
fn folder(path: &Path) -> Result<&Path, Failure> {
    fs::create_dir_all(path).map_err(|error| Failure::file(path, &error))?;
    Ok(path)
}

/// Returns every setting, in the order of the result.
fn settings(args: &Sweep) -> Vec<Setting> {
    let mut settings = Vec::new();
    for pipeline in args.pipelines() {
        for c in args.c() {
            for j in args.j() {
                let of_arm = |arm| Setting {
                    pipeline,
                    arm,
                    c,
                    j,
                };
                settings.extend(args.arms().into_iter().map(of_arm));
            }
        }
    }
    settings
}

/// Measures what the state lacks. After a signal the state has all whole measurements.
fn measure_all(
    args: &Sweep,
    settings: &[Setting],
    state: State,
    svg: Option<&Path>,
) -> Result<State, Failure> {
    let interrupt = Interrupt::watch()?;
    let left = match &args.state {
        Some(path) => format!("{}: the same command goes on there", output::shown(path)),
        None => "nothing is kept; with --state FILE the command could go on".to_owned(),
    };
    let (rounds, settings) = (args.rounds(), settings.to_vec());
    let until = args.short.then(|| Instant::now() + SHORT);
    let waterfall = svg.map(|folder| folder.join("waterfall.svg"));
    let state = Arc::new(Mutex::new(state));
    let shared = Arc::clone(&state);
    let describe = || left.clone();
    let measured = interrupt.unless_it_comes("the sweep", describe, move || {
        let bar = progress::bar("measuring");
        bar.set_length(u64::from(rounds) * settings.len() as u64);
        for round in 1..=rounds {
            for turn in 0..settings.len() {
                let setting = settings[(round as usize + turn) % settings.len()];
                bar.set_message(format!("round {round}: {setting}"));
                let is_late = until.is_some_and(|until| Instant::now() >= until);
                if is_late {
                    return Ok(());
                }
                if !lock(&shared).has(setting, round) {
                    if bar.is_hidden() {
                        tracing::info!("round {round} of {rounds}: {setting}");
                    }
                    let is_last = Some(&setting) == settings.last();
                    let order = Order {
                        setting,
                        waterfall: waterfall.clone().filter(|_| is_last && round == 1),
                    };
                    let sample = measure(&order)?;
                    let measured = Measured {
                        setting,
                        round,
                        sample,
                    };
                    lock(&shared).add(measured)?;
                }
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        Ok::<_, Failure>(())
    })?;
    // A signal from a terminal ends the process that measures, too.
    if let (Err(_), Some(signal)) = (&measured, interrupt.signal()) {
        return Err(Failure::stopped(signal, left));
    }
    measured?;
    let state = Arc::try_unwrap(state).map_err(|_| failed("the sweep has not ended"))?;
    Ok(state.into_inner().unwrap_or_else(PoisonError::into_inner))
}

// A measurement is added whole.
fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints the rows, and draws them.
fn report(
    context: &Context,
    args: &Sweep,
    settings: &[Setting],
    state: &State,
    cores: usize,
) -> Result<(), Failure> {
    let row = |setting: &Setting| {
        let isolated = Setting { j: 1, ..*setting };
        Row::new(state, *setting, isolated)
    };
    let rows: Vec<Row> = settings.iter().filter_map(row).collect();
    let title = format!(
        "{} {}{}, {} synthesis threads on {cores} cores; medians of {} rounds",
        args.kind,
        args.sector_size,
        args.of_partitions(),
        context.config.synthesis.threads,
        args.rounds()
    );
    if rows.len() < settings.len() {
        let missing = settings.len() - rows.len();
        output::say(format_args!(
            "{missing} settings were not measured, for want of time"
        ));
    }
    let host = Host::read(Path::new("/"), context.config.cpu.isa.name());
    if context.json {
        for row in &rows {
            let machine = &host;
            output::print(true, &OnMachine { row, machine }, |_| String::new())?;
        }
    } else {
        output::print_lines(&table::text(&format!("{title}\n{host}"), &rows))?;
    }
    let Some(folder) = &args.svg else {
        return Ok(());
    };
    let write = |name: &str, svg: &str| OutputPath::new(&folder.join(name))?.write(svg.as_bytes());
    write("throughput.svg", &drawings::throughput(&title, &rows)?)?;
    write("stages.svg", &drawings::stages(&title, &rows))
}
