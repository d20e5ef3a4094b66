//! The multiples maker: what comes of a look at a circuit.

use cuzk_groth16::backend::Footprint;
use cuzk_kernels::Isa;
use cuzk_memory::Checkpoint;

use super::*;
use crate::Error;
use crate::engine::assets::cost::KeyFiles;
use crate::engine::workers::multiples::{Looked, end_look, look_at};
use crate::timeline::Stage;

/// A circuit whose files take more memory than there is. That is an error once.
#[test]
fn a_want_of_room_is_told_once() {
    let case = Case::new(1, false);
    let (core, id) = (case.core(), id(POREP));
    assert_eq!(look_at(core, id).unwrap(), Looked::Done, "it is not loaded");
    let circuit = core.assets.circuit(id, &Checkpoint::never()).unwrap();
    let learn = |kept_bytes| {
        let on_devices = Footprint {
            peak_bytes: 1,
            finish_bytes: 0,
            kept_blocks: Vec::new(),
        };
        let files = KeyFiles::of(1, None);
        let costs = &core.assets.costs;
        costs.learn((id, &circuit), files, on_devices, kept_bytes);
    };
    for _ in 0..2 {
        learn(u64::MAX >> 1);
        let refused = look_at(core, id).unwrap_err();
        assert!(matches!(refused, Error::OverBudget(_)), "{refused}");
        assert_eq!(look_at(core, id).unwrap(), Looked::Done);
        // There is room for a while, so a want of it is new afterwards.
        learn(0);
        assert_eq!(look_at(core, id).unwrap(), Looked::Done);
    }
}

#[test]
fn an_error_is_logged_unless_the_engine_ends() {
    let case = Case::new(1, false);
    let (queue, id) = (&case.core().assets.multiples, id(POREP));
    let end = |looked| {
        queue.ask(id);
        let lines = logged(|| end_look(queue, id, looked));
        assert!(queue.asked().is_empty());
        lines.contains("could not be made")
    };
    assert!(!end(Ok(Looked::Done)));
    assert!(end(Err(Error::Stopped)));
    queue.close();
    assert!(!end(Err(Error::Stopped)));
}

/// They are made where they are wanted and missing, by a processor that can use them.
#[test]
fn multiples_are_made_once() {
    for is_wanted in [false, true] {
        let case = Case::with(1, true, |sizes| {
            sizes.config.srs.multiples = if is_wanted { vec![POREP] } else { Vec::new() };
        });
        case.accept(POREP, 1);
        drop(case.admit(Lane::Common).unwrap());
        let is_made = || {
            let mut looked = Ok(Looked::NoMemory);
            let lines = logged(|| looked = look_at(case.core(), id(POREP)));
            assert_eq!(looked.unwrap(), Looked::Done);
            lines.contains("multiples of the parameters' points were made")
        };
        assert_eq!(is_made(), is_wanted && Isa::ifma().is_some());
        assert!(!is_made(), "they are there, or cannot be used");
        let spans = case.core().timeline.spans();
        assert!(spans.iter().any(|span| span.stage == Stage::Multiples));
    }
}
