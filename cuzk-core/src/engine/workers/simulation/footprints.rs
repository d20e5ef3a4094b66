//! Footprints of partitions that a simulation has counted before.
//!
//! To count a footprint takes longer than all other steps of a simulated partition, and all
//! simulated engines ask for the same few. The invariant: a footprint is the one that the
//! workspace counts.

use std::cell::RefCell;
use std::collections::VecDeque;

use cuzk_groth16::CircuitSizes;
use cuzk_groth16::backend::{CpuWorkspace, Footprint};
use cuzk_groth16::params::Shapes;

use super::bench::{Bench, KINDS, id};
use crate::circuits;

/// All that a footprint depends on.
type Asked = (CpuWorkspace, CircuitSizes, Shapes);

/// The most that are remembered.
const COUNTED_MAX: usize = 16;

thread_local! {
    /// The oldest is in front.
    static COUNTED: RefCell<VecDeque<(Asked, Footprint)>> = const { RefCell::new(VecDeque::new()) };
}

/// Returns the footprint of a partition, as [`CpuWorkspace::footprint`] does.
pub(super) fn footprint(
    workspace: &CpuWorkspace,
    sizes: &CircuitSizes,
    shapes: &Shapes,
) -> Footprint {
    let asked = (*workspace, *sizes, *shapes);
    COUNTED.with_borrow_mut(|counted| {
        if let Some((_, known)) = counted.iter().find(|(of, _)| *of == asked) {
            return known.clone();
        }
        let footprint = workspace.footprint(sizes, shapes);
        if counted.len() == COUNTED_MAX {
            counted.pop_front();
        }
        counted.push_back((asked, footprint.clone()));
        footprint
    })
}

/// More are asked for than are remembered.
#[test]
fn footprints_are_those_that_the_workspace_counts() {
    let bench = Bench::new();
    let circuit = circuits::open(id(KINDS[0]), &bench.config.srs.param_cache).unwrap();
    let (sizes, shapes) = (circuit.sizes(), Shapes::default());
    let most = COUNTED_MAX + 4;
    for threads in (1..=most).chain(most - 2..=most).chain(1..=most) {
        let workspace = CpuWorkspace {
            threads,
            ..bench.config.cpu_workspace()
        };
        let counted = workspace.footprint(&sizes, &shapes);
        assert_eq!(footprint(&workspace, &sizes, &shapes), counted, "{threads}");
        COUNTED.with_borrow(|known| assert!(known.len() <= COUNTED_MAX));
    }
}
