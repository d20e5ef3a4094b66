//! The devices of an engine, and what stands in for them.
//!
//! Not their threads. The invariants: a station keeps its index; a device that is
//! out is given one partition at a time, after a rest, and never a critical one; none is
//! given a partition again that it failed to prove.

use std::collections::HashSet;
use std::sync::atomic::AtomicI32;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use cuzk_scheduler::admission::Lane;
use cuzk_scheduler::health::{Health, Trial};
use cuzk_scheduler::priority::Priority;
use rayon::ThreadPool;
use supraseal_sys::GpuResources;

use super::shared::cannot_start;
use super::task::Task;
use super::watch::{Call, Part};
use crate::Result;
use crate::backend::{CpuBackend, Device};
use crate::config::Config;
use crate::kinds::CircuitId;

/// A device, and what is known of it.
pub(super) struct Station {
    pub(super) device: Device,
    pub(super) health: Arc<Health>,
    /// The circuits that do not fit on it. All its memory was taken when it was opened, so
    /// that they never will, unless somebody says that it was mended.
    too_large: Mutex<HashSet<CircuitId>>,
}

/// The CPU as one worker's own: work on it neither waits for others' work nor
/// stands still with it.
pub(super) struct Solo {
    pub(super) station: Station,
    pub(super) pool: Arc<ThreadPool>,
}

/// The devices, then the critical and the retry worker's stations, which are made
/// when first needed.
pub(super) struct Stations {
    devices: Vec<Station>,
    solos: [OnceLock<Solo>; SOLO_ROLES.len()],
    /// Of these one is made at a time.
    making: Mutex<()>,
    config: Config,
}

const SOLO_ROLES: [&str; 2] = ["critical", "retry"];

/// Whether a station takes a partition.
pub(super) enum Claim {
    No,
    Yes,
    /// As the one that shows whether the device is good again.
    Trial(Trial),
}

impl Solo {
    fn new(config: &Config) -> Result<Self> {
        let pool = Arc::new(config.synthesis.pool()?);
        let resources = Arc::new(GpuResources::new().map_err(cannot_start)?);
        let backend = CpuBackend::new(Arc::clone(&resources), Arc::clone(&pool));
        let device = Device {
            resources,
            backend: Arc::new(backend.with_isa(config.cpu.isa)),
        };
        // It is the last resort: its faults are counted and have no consequence.
        let health = Arc::new(Health::new(u32::MAX, Duration::ZERO));
        let station = Station::new(device, health);
        Ok(Self { station, pool })
    }
}

impl Station {
    fn new(device: Device, health: Arc<Health>) -> Self {
        Self {
            device,
            health,
            too_large: Mutex::default(),
        }
    }

    // Every change is one step.
    fn too_large(&self) -> MutexGuard<'_, HashSet<CircuitId>> {
        self.too_large
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Trusts its device as if it had never failed, unless it still owes an answer. Whether
    /// it is trusted now.
    pub(super) fn reinstate(&self) -> bool {
        let is_trusted = self.health.reinstate();
        if is_trusted {
            self.too_large().clear();
        }
        is_trusted
    }

    /// Whether it takes work, were it only one partition to show that it is good.
    fn accepts(&self, critical: bool) -> bool {
        self.health.is_trusted() || !critical && self.health.is_rested()
    }

    /// A call of its device, which it makes as the station of this index. The cores do
    /// not fall silent, and may stand still for critical work.
    pub(super) fn call(&self, station: usize, part: Part) -> Call {
        Call {
            station,
            part,
            is_watched: !self.device.backend.is_this_cpu(),
        }
    }
}

impl Stations {
    pub(super) fn new(config: &Config, devices: Vec<Device>) -> Self {
        let gpus = &config.gpus;
        let health = || Arc::new(Health::new(gpus.faults_max, gpus.rest));
        let station = |device| Station::new(device, health());
        Self {
            devices: devices.into_iter().map(station).collect(),
            solos: [const { OnceLock::new() }; SOLO_ROLES.len()],
            making: Mutex::default(),
            config: config.clone(),
        }
    }

    pub(super) fn devices(&self) -> &[Station] {
        &self.devices
    }

    /// Whether partitions hold vectors over their domain on a lane's stations: not
    /// where every device evaluates by itself.
    pub(super) fn hold_vectors(&self, lane: Lane) -> bool {
        let evaluates = |station: &Station| station.device.backend.evaluates();
        lane != Lane::Common || !self.devices.iter().all(evaluates)
    }

    /// The station of a lane's worker.
    pub(super) fn of_lane(&self, lane: Lane) -> usize {
        match lane {
            Lane::Critical => self.devices.len(),
            Lane::Retry | Lane::Common => self.devices.len() + 1,
        }
    }

    /// A solo worker's station and threads; none if the system has no threads at this
    /// moment.
    pub(super) fn solo(&self, station: usize) -> Option<&Solo> {
        let solo = self.solos.get(station.checked_sub(self.devices.len())?)?;
        if let Some(made) = solo.get() {
            return Some(made);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if solo.get().is_none() {
            match Solo::new(&self.config) {
                Ok(made) => drop(solo.set(made)),
                Err(error) => tracing::error!(%error, "no threads for partitions out of turn"),
            }
        }
        solo.get()
    }

    pub(super) fn get(&self, station: usize) -> Option<&Station> {
        match self.devices.get(station) {
            Some(station) => Some(station),
            None => self.solo(station).map(|solo| &solo.station),
        }
    }

    /// The stations there are, with what they are for.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &'static str, &Station)> {
        let devices = self.devices.iter().enumerate();
        let devices = devices.map(|(index, station)| (index, "device", station));
        let solos = SOLO_ROLES.into_iter().zip(&self.solos).enumerate();
        let solos = solos.filter_map(|(index, (role, solo))| {
            let solo = solo.get()?;
            Some((self.devices.len() + index, role, &solo.station))
        });
        devices.chain(solos)
    }

    /// How many devices are trusted with work.
    pub(super) fn num_trusted(&self) -> usize {
        let devices = self.devices.iter();
        devices
            .filter(|station| station.health.is_trusted())
            .count()
    }

    /// Whether a device is left that has not failed to prove it.
    pub(super) fn has_device_for(&self, task: &Task) -> bool {
        let mut stations = self.devices.iter().enumerate();
        stations.any(|(index, station)| {
            !task.tried.contains(&index) && station.accepts(task.is_critical())
        })
    }

    /// Whether a device that is out has rested.
    pub(super) fn any_is_rested(&self) -> bool {
        self.devices
            .iter()
            .any(|station| station.health.is_rested())
    }

    /// Whether a device is to prove it: not one that failed to.
    pub(super) fn claim(&self, station: usize, task: &Task) -> Claim {
        let Some(here) = self.devices.get(station) else {
            return Claim::No;
        };
        if task.tried.contains(&station) {
            Claim::No
        } else if here.health.is_trusted() {
            Claim::Yes
        } else if task.is_critical() {
            Claim::No
        } else {
            here.health.try_it().map_or(Claim::No, Claim::Trial)
        }
    }

    /// A circuit does not fit on a device: its partitions need not be made for it to find
    /// that out again.
    pub(super) fn is_too_small(&self, station: usize, id: CircuitId) {
        let Some(here) = self.devices.get(station) else {
            return;
        };
        if here.too_large().insert(id) {
            tracing::warn!(
                station, circuit = %id,
                "the circuit does not fit on the device; its partitions are proved elsewhere"
            );
        }
    }

    /// The devices on which a circuit does not fit, as far as that was tried.
    pub(super) fn too_small_for(&self, id: CircuitId) -> Vec<usize> {
        let devices = self.devices.iter().enumerate();
        let too_small = devices.filter(|(_, station)| station.too_large().contains(&id));
        too_small.map(|(index, _)| index).collect()
    }

    /// Which workers are to take a partition, if any are left. Critical work has a
    /// worker of its own, which takes it to a device, or all the way where the devices
    /// are the cores themselves or are all out.
    pub(super) fn lane_for(&self, task: &Task) -> Option<Lane> {
        let untried = |lane| !task.tried.contains(&self.of_lane(lane));
        if task.is_critical() && (self.is_for_a_device(task) || untried(Lane::Critical)) {
            Some(Lane::Critical)
        } else if self.has_device_for(task) {
            Some(Lane::Common)
        } else {
            untried(Lane::Retry).then_some(Lane::Retry)
        }
    }

    /// Whether a partition that has a worker of its own is proved on a device: not if
    /// the cores are the devices, where other work can stand still for it.
    pub(super) fn is_for_a_device(&self, task: &Task) -> bool {
        let on_cpu = |station: &Station| station.device.backend.is_this_cpu();
        task.is_critical() && self.has_device_for(task) && !self.devices.iter().all(on_cpu)
    }

    /// The count that b_g2_msm raises. It is the C++ side's own atomic, lent
    /// for as long as the device's resources live. Memory bandwidth is the
    /// machine's, so all devices raise the same one, and the first lends it.
    pub(super) fn throttle(&self) -> Option<&AtomicI32> {
        let first = self.devices.first()?;
        let throttles = self.config.pipeline.throttle;
        throttles.then(|| first.device.resources.throttle())
    }
}

impl Task {
    pub(super) fn is_critical(&self) -> bool {
        self.state.priority() == Priority::Critical
    }
}
