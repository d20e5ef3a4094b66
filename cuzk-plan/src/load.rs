//! A load: the proofs that are asked for, how many machines share them, and deadlines.
//!
//! Not the machines. The invariant: the requests of a load depend on it alone; its seed
//! decides all that is random.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::kind::{Kind, SectorSize};
use crate::run::Request;
use crate::{PlanError, table};

/// The seconds of a day.
pub const DAY_S: f64 = 86_400.0;

/// The deadlines of a day: the chain has one every half hour.
const DEADLINES_PER_DAY: f64 = 48.0;

/// The most proofs of a load. A thousand machines that prove without a pause for a week
/// make half as many.
const PROOFS_MAX: f64 = 5e7;

/// A load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Load {
    /// A name for people.
    pub name: String,
    /// The size of all sectors.
    #[serde(rename = "sector_size")]
    pub sector_size: SectorSize,
    /// The machines that share the load.
    pub machines: u32,
    /// The simulated time, in days.
    pub days: f64,
    /// The seed of all that is random.
    pub seed: u64,
    /// New sectors.
    pub porep: Option<Demanded>,
    /// Updated sectors.
    pub snap_deals: Option<Demanded>,
    /// Partitions of deadlines. They are asked for at 48 times of a day.
    pub window_post: Option<Demanded>,
    /// Won blocks.
    pub winning_post: Option<Demanded>,
}

/// The proofs of one kind that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demanded {
    /// Their number: a sector, or a partition of a PoSt, has one.
    pub proofs_per_day: f64,
    /// The time after which a proof is late, in seconds.
    pub deadline_s: f64,
}

impl Load {
    /// Returns the load that `text` of the file of this name describes.
    ///
    /// # Errors
    /// [`PlanError::Syntax`] for a key that is unknown, missing or of the wrong type,
    /// [`PlanError::Value`] for a value outside of its range.
    pub fn parse(file: &str, text: &str) -> Result<Self, PlanError> {
        let load: Self = table::read(file, text)?;
        let machines = f64::from(load.machines);
        table::check_range(file, "machines", machines, (1.0, 100_000.0))?;
        table::check_range(file, "days", load.days, (1.0 / DAY_S, 3660.0))?;
        let per_day = load.kinds().map(|(_, demanded)| demanded.proofs_per_day);
        let proofs = per_day.sum::<f64>() * load.days;
        table::check_range(file, "proofs_per_day times days", proofs, (0.0, PROOFS_MAX))?;
        Ok(load)
    }

    /// Returns the kinds of proofs that are asked for.
    pub fn kinds(&self) -> impl Iterator<Item = (Kind, Demanded)> {
        let all = [
            (Kind::Porep, self.porep),
            (Kind::SnapDeals, self.snap_deals),
            (Kind::WindowPost, self.window_post),
            (Kind::WinningPost, self.winning_post),
        ];
        all.into_iter()
            .filter_map(|(kind, demanded)| Some((kind, demanded?)))
    }

    /// Returns all requests of the load, in the order of their arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        let mut requests = Vec::new();
        for (kind, demanded) in self.kinds() {
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
            rng.set_stream(kind as u64);
            if kind == Kind::WindowPost {
                self.at_deadlines(demanded, &mut requests);
            } else {
                self.at_random(kind, demanded, &mut rng, &mut requests);
            }
        }
        requests.sort_by(|a, b| a.asked_s.total_cmp(&b.asked_s));
        requests
    }

    /// Adds requests at all times alike.
    fn at_random(
        &self,
        kind: Kind,
        demanded: Demanded,
        rng: &mut ChaCha8Rng,
        requests: &mut Vec<Request>,
    ) {
        let mut asked_s = 0.0;
        loop {
            let uniform: f64 = rng.gen_range(f64::MIN_POSITIVE..1.0);
            // A load without proofs has its first one after all time.
            asked_s -= uniform.ln() * DAY_S / demanded.proofs_per_day.max(f64::MIN_POSITIVE);
            if asked_s >= self.days * DAY_S {
                return;
            }
            requests.push(Request { kind, asked_s });
        }
    }

    /// Adds the requests of each deadline at its beginning.
    fn at_deadlines(&self, demanded: Demanded, requests: &mut Vec<Request>) {
        let kind = Kind::WindowPost;
        let (mut asked_s, mut owed) = (0.0, 0.0);
        while asked_s < self.days * DAY_S {
            owed += demanded.proofs_per_day / DEADLINES_PER_DAY;
            while owed >= 1.0 {
                owed -= 1.0;
                requests.push(Request { kind, asked_s });
            }
            asked_s += DAY_S / DEADLINES_PER_DAY;
        }
    }
}
