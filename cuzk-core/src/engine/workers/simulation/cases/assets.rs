//! Circuits and parameters: loaded, charged, replaced and let go of.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use cuzk_filecoin::CircuitId;
use cuzk_groth16::CircuitForm;
use cuzk_groth16::backend::Footprint;
use cuzk_groth16::backend::footprint::circuit_bytes;
use cuzk_groth16::evaluate::{form_bytes_of_circuit, form_bytes_of_partition};
use cuzk_groth16::params::{GenerateOptions, LoadedParams, ParamCache, Shapes};
use cuzk_kernels::Isa;
use cuzk_memory::Checkpoint;
use cuzk_scheduler::admission::{Need, Turn};

use super::*;
use crate::Error;
use crate::circuits::parameter_files;
use crate::engine::assets::cost::{Charge, KeyFiles};
use crate::engine::preload::{evict, preload};
use crate::engine::workers::admission::take_turn;
use crate::engine::workers::learn;

const MIB: u64 = 1 << 20;

/// An engine that loads what was evicted anew.
fn evicting() -> Case {
    Case::with(2, false, |sizes| sizes.evicts = true)
}

impl Case {
    fn is_loaded(&self, id: CircuitId) -> [bool; 2] {
        let assets = &self.core().assets;
        let params = assets.loaded_params(id).is_some();
        [assets.present_circuit(id).is_some(), params]
    }

    /// Returns the parameters of an attempt that begins now.
    fn params(&self, id: CircuitId) -> Arc<LoadedParams> {
        let never = Checkpoint::never();
        let circuit = self.core().assets.circuit(id, &never).unwrap();
        self.core().params(id, &circuit, &never).unwrap()
    }
}

#[test]
fn a_circuit_is_loaded_charged_and_let_go_of() {
    let case = evicting();
    let (core, id) = (case.core(), id(POREP));
    assert_eq!(case.is_loaded(id), [false; 2]);
    assert!(!preload(core, id).unwrap().already_loaded);
    assert_eq!(case.is_loaded(id), [true; 2]);
    assert!(preload(core, id).unwrap().already_loaded);
    let usage = core.dispatch.admission.usage();
    let (key, shared_bytes) = core.assets.costs.shared(id).unwrap();
    assert_eq!(key, id.into());
    assert_eq!(
        (usage.used_bytes, usage.idle_bytes),
        (shared_bytes, shared_bytes)
    );
    let gone = evict(core, id).unwrap();
    assert_eq!((gone.was_loaded, gone.freed_bytes), (true, shared_bytes));
    assert_eq!(case.is_loaded(id), [false; 2]);
    assert_eq!(core.dispatch.admission.usage().used_bytes, 0);
    assert_eq!(case.life.devices[1].evictions(), (1, 0));
    let gone = evict(core, id).unwrap();
    assert_eq!((gone.was_loaded, gone.freed_bytes), (false, 0));
    // A circuit that is loaded and not charged is let go of as well.
    core.assets.circuit(id, &Checkpoint::never()).unwrap();
    assert_eq!(case.is_loaded(id), [true, false]);
    assert!(evict(core, id).unwrap().was_loaded);
    case.params(id);
    let gone = evict(core, id).unwrap();
    assert_eq!((gone.was_loaded, gone.freed_bytes), (true, 0));
    assert_eq!(case.is_loaded(id), [false; 2]);
}

/// Returns the partitions that keep a circuit, and true if multiples do.
fn users(refused: &Error) -> (usize, bool) {
    match refused {
        Error::InUse {
            partitions,
            makes_multiples,
            ..
        } => (*partitions, *makes_multiples),
        other => panic!("{other}"),
    }
}

#[test]
fn a_circuit_in_use_is_not_let_go_of() {
    let case = evicting();
    case.accept(POREP, 2);
    let admitted = [(); 2].map(|()| case.admit(Lane::Common).unwrap());
    let refused = evict(case.core(), id(POREP)).unwrap_err();
    assert_eq!(users(&refused), (2, false), "{refused}");
    let multiples = Need {
        own_bytes: 1,
        shared: case.core().assets.costs.shared(id(POREP)),
    };
    let making = case.core().dispatch.admission.reserve(&multiples).unwrap();
    let refused = evict(case.core(), id(POREP)).unwrap_err();
    assert_eq!(users(&refused), (2, true), "{refused}");
    drop(admitted);
    let refused = evict(case.core(), id(POREP)).unwrap_err();
    assert_eq!(users(&refused), (0, true), "{refused}");
    let told = refused.to_string();
    assert!(told.contains("multiples") && told.contains("; let go of it when"));
    drop(making);
    assert!(evict(case.core(), id(POREP)).unwrap().was_loaded);
}

#[test]
fn a_circuit_for_which_there_is_no_memory_is_not_loaded() {
    let case = Case::with(1, false, |sizes| {
        sizes.evicts = true;
        // Reading takes 64 MiB, and the device keeps 50.
        sizes.config.memory.total_budget_bytes = 40 * MIB;
    });
    let refused = preload(case.core(), id(POREP)).unwrap_err();
    assert!(matches!(refused, Error::OverBudget(_)), "{refused}");
    assert_eq!(case.is_loaded(id(POREP)), [false; 2]);
    let files = parameter_files(id(WINDOW)).unwrap();
    fs::remove_file(case.bench.config.srs.param_cache.join(files.vk)).unwrap();
    let refused = preload(case.core(), id(WINDOW)).unwrap_err();
    assert!(matches!(refused, Error::Params(_)), "{refused}");
    let refused = case.submit(request(WINDOW, 1), JobOptions::default());
    assert!(matches!(refused, Err(Error::Params(_))));
}

/// The device keeps 50 MiB for a circuit, and a partition has 100 MiB with it.
#[test]
fn a_circuit_costs_the_sum_of_its_parts() {
    for form in [CircuitForm::Compiled, CircuitForm::Plain] {
        let case = Case::with(2, false, |sizes| sizes.config.synthesis.circuit = form);
        let (core, id) = (case.core(), id(POREP));
        preload(core, id).unwrap();
        let circuit = core.assets.present_circuit(id).unwrap();
        let of_circuit = form_bytes_of_circuit(&circuit, form);
        let of_partition = form_bytes_of_partition(&circuit, form);
        let is_plain = form == CircuitForm::Plain;
        assert_eq!(of_circuit > 0, is_plain, "{of_circuit}");
        let costs = &core.assets.costs;
        let circuit_bytes = circuit_bytes(&circuit.sizes()) + of_circuit + 2 * 50 * MIB;
        let file_bytes = case.params(id).mapped().file_bytes() as u64;
        assert_eq!(costs.parts(id), Some((file_bytes, circuit_bytes)));
        let shared = Some((id.into(), circuit_bytes + file_bytes));
        assert_eq!(costs.shared(id), shared);
        let on_cpu = core.config.cpu_workspace();
        let on_cpu = on_cpu
            .footprint(&circuit.sizes(), &Shapes::default())
            .peak_bytes;
        for (lane, own_bytes) in [(Lane::Common, 100 * MIB), (Lane::Retry, on_cpu)] {
            let need = costs.known(id, lane).unwrap();
            assert_eq!(need.own_bytes, own_bytes + of_partition, "{lane:?}");
            assert_eq!(need.shared, shared);
        }
        assert_eq!(core.fleet.wants_evaluated(), is_plain);
    }
}

/// A partition needs 100 MiB, its circuit 50 MiB and a little, and the files more than is left.
#[test]
fn files_that_do_not_fit_are_told_once_and_not_charged() {
    let case = Case::new(1, false);
    let (core, id) = (case.core(), id(POREP));
    preload(core, id).unwrap();
    let (file_bytes, circuit_bytes) = core.assets.costs.parts(id).unwrap();
    let own_bytes = core.assets.costs.known(id, Lane::Retry).unwrap().own_bytes;
    let beside_bytes = own_bytes.max(100 * MIB) + circuit_bytes;
    for (left_bytes, are_charged) in [(file_bytes, true), (file_bytes - 1, false)] {
        let case = Case::with(1, false, |sizes| {
            let memory = &mut sizes.config.memory;
            memory.total_budget_bytes = beside_bytes + left_bytes + memory.safety_margin_bytes;
        });
        let lines = logged(|| {
            for _ in 0..3 {
                preload(case.core(), id).unwrap();
                evict(case.core(), id).unwrap();
            }
        });
        let told = lines.matches("do not fit into memory").count();
        assert_eq!(told, usize::from(!are_charged), "{lines}");
        let charged_bytes = if are_charged { file_bytes } else { 0 };
        let (_, shared_bytes) = case.core().assets.costs.shared(id).unwrap();
        assert_eq!(shared_bytes, circuit_bytes + charged_bytes);
        // Others that do not fit are told, too.
        let core = case.core();
        let circuit = core.assets.circuit(id, &Checkpoint::never()).unwrap();
        let footprint = Footprint {
            peak_bytes: 1,
            finish_bytes: 0,
            kept_blocks: Vec::new(),
        };
        let larger = KeyFiles::of(usize::MAX >> 1, None);
        let costs = &core.assets.costs;
        let lines = logged(|| costs.learn((id, &circuit), larger, footprint, 0));
        assert!(lines.contains("do not fit into memory"), "{lines}");
    }
}

/// A partition has read the files, and their memory is not charged. Or it is charged, and one of
/// the files is gone.
#[test]
fn what_is_loaded_or_charged_alone_is_loaded_again() {
    let case = evicting();
    let (core, id) = (case.core(), id(POREP));
    let never = Checkpoint::never();
    let circuit = core.assets.circuit(id, &never).unwrap();
    let params = core.params(id, &circuit, &never).unwrap();
    assert!(!preload(core, id).unwrap().already_loaded);
    assert!(preload(core, id).unwrap().already_loaded);
    drop((circuit, params));
    core.evict(id.into());
    let circuit = core.assets.circuit(id, &never).unwrap();
    assert!(!preload(core, id).unwrap().already_loaded);
    drop(circuit);
    core.evict(id.into());
    assert!(evict(core, id).unwrap().was_loaded, "it was charged");
    assert!(!evict(core, id).unwrap().was_loaded);
}

/// A device that does not answer has the memory that was free for the files.
#[test]
fn files_are_not_charged_where_a_device_took_their_memory() {
    let case = Case::new(1, false);
    let (core, id) = (case.core(), id(POREP));
    preload(core, id).unwrap();
    let (_, circuit_bytes) = core.assets.costs.parts(id).unwrap();
    let own_bytes = core.assets.costs.known(id, Lane::Common).unwrap().own_bytes;
    let admission = &core.dispatch.admission;
    let taken = Need::own(admission.limits().total_bytes - own_bytes - circuit_bytes);
    let (mut taken, _) = admission.reserve_evicting(&taken).unwrap();
    taken.abandon();
    case.accept(POREP, 1);
    let shared = core.assets.costs.shared(id);
    assert_eq!(shared, Some((id.into(), circuit_bytes)));
}

/// A partition needs 150 MiB. That is known once its circuit was read.
#[test]
fn a_job_that_can_never_have_its_memory_is_refused_where_that_is_known() {
    let case = Case::with(1, false, |sizes| {
        sizes.config.memory.total_budget_bytes = 120 * MIB;
    });
    let (core, id) = (case.core(), id(POREP));
    let submit = || case.submit(request(POREP, 1), JobOptions::default());
    let job = submit().unwrap();
    assert!(case.admit(Lane::Common).is_none());
    assert!(matches!(
        *job.outcome().unwrap().unwrap_err(),
        Error::OverBudget(_)
    ));
    assert!(
        core.assets.costs.known(id, Lane::Common).is_none(),
        "the files may change"
    );
    // A partition of another job has read it meanwhile.
    let never = Checkpoint::never();
    let circuit = core.assets.circuit(id, &never).unwrap();
    let params = core.params(id, &circuit, &never).unwrap();
    let pool = &case.bench.pool;
    let files = core.assets.key_files(id, &circuit, &params, pool, &never);
    learn(core, id, &circuit, files.unwrap());
    assert!(matches!(submit(), Err(Error::OverBudget(_))));
    assert!(
        core.assets.costs.known(id, Lane::Common).is_none(),
        "it is told once"
    );
    assert!(submit().is_ok());
}

/// Puts parameters of another seed in the place of those in a folder.
fn replace(folder: &Path, id: CircuitId) {
    let other = tempfile::tempdir().unwrap();
    let program = cuzk_pce::compile(Root::new(0, false)).unwrap();
    let files = parameter_files(id).unwrap();
    let options = GenerateOptions {
        seed: 7,
        ..GenerateOptions::default()
    };
    ParamCache::new(other.path())
        .ensure_generated(&files, &program, options, |_, _| ())
        .unwrap();
    for name in [&files.params, &files.vk] {
        move_into(&other.path().join(name), &folder.join(name));
    }
}

/// Has a file take the place of another one at once.
fn move_into(from: &Path, to: &Path) {
    let beside = to.with_extension("new");
    fs::copy(from, &beside).unwrap();
    fs::rename(beside, to).unwrap();
}

#[test]
fn what_begins_after_parameters_were_replaced_has_the_new_ones() {
    let case = evicting();
    let (core, id) = (case.core(), id(POREP));
    let old = case.params(id);
    let are_current = |params: &LoadedParams| core.assets.are_current(id, params);
    assert!(are_current(&old) && Arc::ptr_eq(&case.params(id), &old));
    let folder = &case.bench.config.srs.param_cache;
    replace(folder, id);
    assert!(are_current(&old), "nobody has looked");
    let lines = logged(|| drop(case.params(id)));
    assert!(lines.contains("the parameters were replaced;"), "{lines}");
    let new = case.params(id);
    assert!(!Arc::ptr_eq(&new, &old) && are_current(&new) && !are_current(&old));
    assert_eq!(
        case.life.devices[0].evictions(),
        (0, 1),
        "those of the old ones"
    );
}

#[test]
fn files_that_cannot_be_used_take_nobodys_place() {
    let id = id(POREP);
    let files = parameter_files(id).unwrap();
    for name in [files.params, files.vk] {
        let case = evicting();
        let old = case.params(id);
        let folder = &case.bench.config.srs.param_cache;
        let bad = folder.join("bad");
        fs::write(&bad, "no parameters").unwrap();
        move_into(&bad, &folder.join(name));
        let lines = logged(|| {
            for _ in 0..2 {
                assert!(Arc::ptr_eq(&case.params(id), &old));
            }
        });
        let told = lines.matches("files that cannot be used").count();
        assert_eq!(told, 1, "{lines}");
        assert!(case.core().assets.are_current(id, &old));
    }
}

/// A mapped file that was written to is not the file that was mapped, so it is not kept.
#[test]
fn parameters_that_were_written_to_are_read_again() {
    let case = evicting();
    let (core, id) = (case.core(), id(POREP));
    let _old = case.params(id);
    let never = Checkpoint::never();
    let circuit = core.assets.circuit(id, &never).unwrap();
    let name = parameter_files(id).unwrap().params;
    let path = case.bench.config.srs.param_cache.join(name);
    let len = usize::try_from(fs::metadata(&path).unwrap().len()).unwrap();
    // In its place, and longer: what is mapped stays there.
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&vec![0; len + 1], 0).unwrap();
    let read = core.params(id, &circuit, &never).map(|_| ());
    assert!(matches!(read, Err(Error::Params(_))), "{read:?}");
}

/// Nothing is loaded that could go on in the place of the new files.
#[test]
fn no_old_parameters_go_on_where_none_are_loaded() {
    let case = evicting();
    let (core, id) = (case.core(), id(POREP));
    drop(case.params(id));
    evict(core, id).unwrap();
    let folder = &case.bench.config.srs.param_cache;
    let bad = folder.join("bad");
    fs::write(&bad, "no parameters").unwrap();
    move_into(&bad, &folder.join(parameter_files(id).unwrap().params));
    let never = Checkpoint::never();
    let circuit = core.assets.circuit(id, &never).unwrap();
    let lines = logged(|| {
        let read = core.params(id, &circuit, &never).map(|_| ());
        assert!(matches!(read, Err(Error::Params(_))), "{read:?}");
    });
    assert!(!lines.contains("with the old ones"), "{lines}");
}

/// The files of its circuit were replaced by larger ones after it was charged.
#[test]
fn an_attempt_that_was_charged_for_other_files_is_charged_again() {
    let case = Case::new(1, false);
    let (core, lane) = (case.core(), Lane::Common);
    case.accept(POREP, 2);
    let first = case.admit(lane).unwrap();
    let expected = Arc::clone(&first.footprint);
    let Charge::Proving(files, _) = first.attempt.charge else {
        panic!("its circuit is known");
    };
    let mut turn = core.dispatch.admission.try_next(lane).unwrap();
    let Turn::Admitted { item, .. } = &mut turn else {
        panic!("there is memory for it");
    };
    let others = KeyFiles::of(1, None);
    assert_ne!(files, others);
    let footprint = Footprint {
        peak_bytes: 1,
        ..(*expected).clone()
    };
    item.charge = Charge::Proving(others, Arc::new(footprint));
    assert!(take_turn(core, turn, lane).is_none());
    let admitted = case.admit(lane).unwrap();
    assert_eq!(admitted.footprint, expected);
    let charged = &admitted.attempt.charge;
    assert!(matches!(charged, Charge::Proving(of, _) if *of == files));
}

/// GPUs do not use multiples, and neither does a CPU without the instructions.
#[test]
fn multiples_are_asked_for_where_they_are_wanted() {
    for are_this_cpu in [false, true] {
        let case = Case::with(1, are_this_cpu, |sizes| {
            sizes.config.srs.multiples = vec![POREP];
        });
        for kind in [WINDOW, POREP] {
            case.accept(kind, 1);
            drop(case.admit(Lane::Common).unwrap());
        }
        let assets = &case.core().assets;
        let are_wanted = [WINDOW, POREP].map(|kind| assets.wants_multiples(id(kind)));
        assert_eq!(are_wanted, [false, are_this_cpu]);
        let are_used = are_this_cpu && Isa::ifma().is_some();
        let expected = are_used.then(|| id(POREP).to_string());
        let asked = assets.multiples.asked();
        assert_eq!(asked, Vec::from_iter(expected));
    }
}

/// A device that answers for parameters that were replaced lets go of what it made for them.
#[test]
fn a_device_keeps_nothing_for_parameters_that_were_replaced() {
    let case = evicting();
    case.accept(POREP, 2);
    case.make_ready(2);
    let evictions = || case.life.devices[0].evictions().1;
    assert!(case.start(0, Deed::Prove).is_some());
    assert_eq!(evictions(), 0);
    let ready = case.claim(0).unwrap();
    let region = case.begin(0, ready, Deed::Prove);
    replace(&case.bench.config.srs.param_cache, id(POREP));
    case.params(id(POREP));
    assert_eq!(evictions(), 1);
    assert!(case.answer(region).is_some());
    assert_eq!(evictions(), 2);
}
