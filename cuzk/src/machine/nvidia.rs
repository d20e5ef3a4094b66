//! GPUs as NVIDIA's driver lists them, through its program `nvidia-smi`.
//!
//! No device is opened, and no memory of a device is taken. The invariant: without the
//! program there are no GPUs here, and that is said apart from an error of the driver.

use std::process::Command;

/// The columns that are asked for.
const QUERY: &str = "--query-gpu=index,name,memory.total,memory.used,compute_cap,driver_version";

/// A GPU, as the driver says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gpu {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) memory_mib: u64,
    pub(crate) used_mib: u64,
    pub(crate) compute: String,
    pub(crate) driver: String,
}

/// The answer of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// There is no such program, so most likely no driver.
    NoProgram,
    /// The driver failed.
    Failed(String),
    Gpus(Vec<Gpu>),
}

/// Asks the driver.
pub(crate) fn ask() -> Answer {
    let asked = Command::new("nvidia-smi")
        .args([QUERY, "--format=csv,noheader,nounits"])
        .output();
    let output = match asked {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Answer::NoProgram,
        Err(error) => return Answer::Failed(error.to_string()),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let problem = text.lines().next().unwrap_or("no message").to_owned();
        return Answer::Failed(problem);
    }
    Answer::Gpus(parse(&text))
}

/// Reads the lines of the answer. A line of another form is left out.
fn parse(text: &str) -> Vec<Gpu> {
    let gpu = |line: &str| {
        let fields: Vec<_> = line.split(',').map(str::trim).collect();
        let [index, name, memory, used, compute, driver] = fields[..] else {
            return None;
        };
        Some(Gpu {
            index: index.parse().ok()?,
            name: name.to_owned(),
            memory_mib: memory.parse().ok()?,
            used_mib: used.parse().ok()?,
            compute: compute.to_owned(),
            driver: driver.to_owned(),
        })
    };
    text.lines().filter_map(gpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_table_is_read() {
        let text = "0, NVIDIA H100 80GB HBM3, 81559, 12, 9.0, 550.54.15\nno line\n\
                    1, GPU, [N/A], 0, 9.0, 1\n";
        let gpus = parse(text);
        let expected = Gpu {
            index: 0,
            name: "NVIDIA H100 80GB HBM3".to_owned(),
            memory_mib: 81_559,
            used_mib: 12,
            compute: "9.0".to_owned(),
            driver: "550.54.15".to_owned(),
        };
        assert_eq!(gpus, [expected]);
    }
}
