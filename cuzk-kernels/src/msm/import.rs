//! Chosen bases in a kernel's own form.

use group::prime::PrimeCurveAffine;

use crate::affine::Kernel;
use crate::bases::{Bases, BasesError, read_selected};

/// Points that are decoded at a time where they are not read from their encodings.
pub(super) const DECODED: usize = 128;

/// Reads the bases with these indices into the kernel's form.
///
/// # Errors
/// When a base is no point.
pub(super) fn import_selected<K: Kernel>(
    kernel: K,
    bases: &dyn Bases<K::Affine>,
    indices: &[u32],
    points: &mut [K::Point],
) -> Result<(), BasesError> {
    if let Some(encoded) = bases.encoded()
        && kernel.import_encoded(encoded, indices, points)
    {
        return Ok(());
    }
    // Also if an encoding is bad: reading it again tells which, and why.
    let mut decoded = vec![K::Affine::identity(); indices.len().min(DECODED)];
    for (indices, points) in indices.chunks(DECODED).zip(points.chunks_mut(DECODED)) {
        let decoded = &mut decoded[..indices.len()];
        read_selected(bases, indices, decoded)?;
        kernel.import(decoded, points);
    }
    Ok(())
}
