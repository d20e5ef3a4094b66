//! A family of samples in Prometheus' text format.
//!
//! Not its values. The invariant: a family is described once.

use std::fmt::Write;

/// A family of samples.
pub(super) struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    /// The rest of each sample's name with its labels, and its value.
    samples: Vec<(String, f64)>,
}

impl Family {
    pub(super) fn new(name: &'static str, kind: &'static str, help: &'static str) -> Self {
        let samples = Vec::new();
        Self {
            name,
            kind,
            help,
            samples,
        }
    }

    pub(super) fn gauge(name: &'static str, help: &'static str, value: f64) -> Self {
        Self::new(name, "gauge", help).with(String::new(), value)
    }

    pub(super) fn with(mut self, labels: String, value: f64) -> Self {
        self.samples.push((labels, value));
        self
    }

    /// Appends the family to `text`. A family without samples is left out.
    pub(super) fn write(&self, text: &mut String) {
        if self.samples.is_empty() {
            return;
        }
        let Self {
            name, kind, help, ..
        } = self;
        // Writing into a text does not fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in &self.samples {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
        text.push('\n');
    }
}
