//! `cuzk bench device…`: proofs on a GPU, from the witness on.
//!
//! The peer is supraseal-c2, in a build with the feature `peer-supraseal`. It has the
//! same circuit, witness and parameters. Its a, b and c are evaluated before anything is
//! measured. The invariant: with the same r and s both proofs are the
//! same bytes, and every proof that is timed verifies.
//!
//! The clock starts when the witness is there, and the made-up circuit has no statement.
//! So these measurements call the stages of a proof, and not
//! [`cuzk_core::pipeline::prove_partition`], which starts at the statement.

mod bounds;
mod gpu;
mod load;
mod made_up;
mod peer;
mod subject;
#[cfg(feature = "peer-supraseal")]
mod supraseal;

use blstrs::Scalar;
use cuzk_groth16::backend::Randomness;
use cuzk_tune::machine::Host;

use self::gpu::Gpu;
use self::load::Load;
use self::peer::Peer;
use self::subject::Subject;
use super::args::Bench;
use super::comparison::{Comparison, median};
use crate::commands::Context;
use crate::failure::{Failure, failed};
use crate::output;

/// Measures proofs of the bundled request of a kind.
pub(super) fn of_kind(context: &Context, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    let gpu = Gpu::open(context)?;
    let subject = Subject::of_kind(context, args)?;
    compare(context, &gpu, &subject, args.runs)
}

/// Measures proofs of a made-up circuit that fills a domain.
pub(super) fn of_size(context: &Context, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    let gpu = Gpu::open(context)?;
    let subject = Subject::of_size(context, args.size)?;
    compare(context, &gpu, &subject, args.runs)
}

/// Measures two workers without a pause: the use of the device, and the resources that
/// grow.
pub(super) fn load(
    context: &Context,
    args: &Bench,
    host: &Host,
) -> Result<Vec<Comparison>, Failure> {
    let gpu = Gpu::open(context)?;
    let subject = Subject::of_kind(context, args)?;
    let load = Load::measure(&gpu, &subject, args.runs as usize, host)?;
    output::print(context.json, &load, Load::text)?;
    Ok(Vec::new())
}

fn compare(
    context: &Context,
    gpu: &Gpu,
    subject: &Subject,
    runs: u32,
) -> Result<Vec<Comparison>, Failure> {
    let added = Randomness::Added {
        r: Scalar::from(peer::R),
        s: Scalar::from(peer::S),
    };
    // The circuit comes to the device with this one.
    let proof = gpu.finish(subject, gpu.start(subject, added, 0)?)?;
    let mut peer = Peer::new(subject, proof)?;
    gpu.time(subject)?;
    let (mut ours_s, mut peer_s) = (Vec::new(), Vec::new());
    let mut regions_s = Vec::new();
    for _ in 0..runs {
        ours_s.push(gpu.time(subject)?);
        let figures = gpu.figures()?;
        regions_s.push((figures.quotient_ms + figures.sums_ms) / 1e3);
        peer_s.extend(peer.time()?);
    }
    let figures = gpu.figures()?;
    output::say(format_args!("the last proof: {figures:?}"));
    let info = gpu.prover.info().map_err(failed)?;
    for bound in bounds::bounds(&info, subject, &figures) {
        output::print(context.json, &bound, bounds::Bound::text)?;
    }
    let ours_s = median(ours_s);
    let peer_s = (!peer_s.is_empty()).then(|| median(peer_s));
    let proof = Comparison {
        stage: "device",
        size: subject.name.clone(),
        threads: rayon::current_num_threads(),
        ours_s,
        peer: peer_s.map(|_| "supraseal-c2"),
        peer_s,
        ratio: peer_s.map(|peer_s| peer_s / ours_s),
        ours_bytes: Some(figures.uploaded_bytes + figures.streamed_bytes),
        peer_bytes: Some(subject.peer_bytes()),
        ..Comparison::default()
    };
    let region = Comparison::alone("device region", subject.name.clone(), regions_s);
    Ok(vec![proof, region])
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use supraseal_sys::GpuResources;
    use supraseal_sys::device::DeviceOptions;
    use supraseal_sys::double::{self, Controls};

    use super::*;

    /// The made-up circuit of one hash, in a domain of 2^16.
    const ONE_HASH: u32 = 16;

    /// Opens a double of a device. Its kernels are plain C++, so their times say nothing of a GPU.
    fn double_of_gpu(context: &Context) -> Gpu {
        let options = DeviceOptions {
            memory_bytes: None,
            workers: 2,
            b_g2: context.config.gpus.b_g2,
            stall_limit: Duration::from_secs(600),
        };
        let resources = Arc::new(GpuResources::new().unwrap());
        let controls = Controls::new().unwrap();
        let device = double::open(1 << 30, &options, resources, &controls).unwrap();
        Gpu::on(context, device).unwrap()
    }

    /// Each proof is verified within.
    #[test]
    fn stages_of_a_device_measure_proofs_on_its_double() {
        let folder = tempfile::tempdir().unwrap();
        let mut context = Context::new(None, true).unwrap();
        context.config.srs.param_cache = folder.path().to_owned();
        let gpu = double_of_gpu(&context);
        let subject = Subject::of_size(&context, ONE_HASH).unwrap();

        let lines = compare(&context, &gpu, &subject, 1).unwrap();
        let named: Vec<_> = lines.iter().map(|line| line.stage).collect();
        assert_eq!(named, ["device", "device region"]);
        for line in &lines {
            assert_eq!(line.size, "2^16");
            assert!(line.ours_s > 0.0, "{line:?}");
        }
        assert!(lines[0].ours_bytes > Some(0), "{lines:?}");
        // A, B, C and the aux values of the peer: more than half of the domain each.
        assert!(lines[0].peer_bytes > Some((4 * 32) << 15), "{lines:?}");

        let host = Host::read(Path::new("/"), "scalar");
        let load = Load::measure(&gpu, &subject, 2, &host).unwrap();
        let told = load.text();
        assert!(
            told.contains("2 proofs by two workers, all verified"),
            "{told}"
        );
    }
}
