//! The names of devices and jobs in pictures.
//!
//! The invariant: the number of names is bounded.

use std::collections::BTreeMap;

/// Jobs whose names are kept; the lowest numbers are forgotten first. The spans that are kept
/// are of fewer jobs, unless these have hardly a span.
const JOBS_MAX: usize = 4096;

/// The names of devices and jobs. A picture shows them as `device 0 (CPU)` and
/// `job 7 (porep 32GiB)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    devices: BTreeMap<usize, String>,
    jobs: BTreeMap<u64, String>,
}

impl Names {
    /// Gives a device a name.
    pub fn name_device(&mut self, device: usize, name: impl Into<String>) {
        self.devices.insert(device, name.into());
    }

    /// Gives a job a name.
    pub fn name_job(&mut self, job: u64, name: impl Into<String>) {
        self.jobs.insert(job, name.into());
        while self.jobs.len() > JOBS_MAX {
            self.jobs.pop_first();
        }
    }

    /// Returns a device in words.
    #[must_use]
    pub fn device(&self, device: usize) -> String {
        match self.devices.get(&device) {
            Some(name) => format!("device {device} ({name})"),
            None => format!("device {device}"),
        }
    }

    /// Returns a job in words.
    #[must_use]
    pub fn job(&self, job: u64) -> String {
        match self.jobs.get(&job) {
            Some(name) => format!("job {job} ({name})"),
            None => format!("job {job}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_the_latest_jobs_are_kept() {
        let mut names = Names::default();
        let last = JOBS_MAX as u64;
        for job in 0..=last {
            names.name_job(job, "x");
        }
        assert_eq!(names.job(0), "job 0");
        assert_eq!(names.job(last), format!("job {last} (x)"));
        assert_eq!(names.device(1), "device 1");
    }
}
