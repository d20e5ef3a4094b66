//! Footprints of partitions that a simulation has counted before.
//!
//! Only tests have this module. To count a footprint takes longer than all other steps of a
//! simulated partition, and all simulated engines ask for the same few. The invariant: a
//! footprint is the one that the workspace counts.

use std::cell::RefCell;

use cuzk_groth16::CircuitSizes;
use cuzk_groth16::backend::{CpuWorkspace, Footprint};
use cuzk_groth16::params::Shapes;

/// All that a footprint depends on.
type Asked = (CpuWorkspace, CircuitSizes, Shapes);

/// The most that are remembered.
const COUNTED_MAX: usize = 16;

thread_local! {
    static COUNTED: RefCell<Vec<(Asked, Footprint)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the footprint of a partition of a circuit of these sizes.
pub(crate) fn footprint(workspace: CpuWorkspace, sizes: CircuitSizes, shapes: Shapes) -> Footprint {
    let asked = (workspace, sizes, shapes);
    COUNTED.with_borrow_mut(|counted| {
        if let Some((_, known)) = counted.iter().find(|(of, _)| *of == asked) {
            return known.clone();
        }
        let footprint = workspace.footprint(&sizes, &shapes);
        counted.truncate(COUNTED_MAX - 1);
        counted.push((asked, footprint.clone()));
        footprint
    })
}
