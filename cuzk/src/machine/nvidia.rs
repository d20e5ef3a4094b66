//! GPUs as NVIDIA's driver lists them, through its program `nvidia-smi`.
//!
//! No device is opened, and no memory of a device is taken. The invariant: without the
//! program there are no GPUs here, and that is said apart from an error of the driver.

use std::process::Command;

/// The columns that are asked for.
const QUERY: &str = "--query-gpu=index,name,memory.total,memory.used,compute_cap,driver_version";

/// The columns that are asked for of a program.
const USERS_QUERY: &str = "--query-compute-apps=pid,process_name,used_memory";

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

/// A program that uses a GPU, as the driver says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) process: String,
    /// The path or the name of the program.
    pub(crate) program: String,
    /// Its memory on the GPU; unknown in some containers.
    pub(crate) memory_mib: Option<u64>,
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

/// Returns the programs that compute on a GPU. A driver that does not answer names none.
pub(crate) fn users(index: u32) -> Vec<User> {
    let asked = Command::new("nvidia-smi")
        .arg(format!("--id={index}"))
        .args([USERS_QUERY, "--format=csv,noheader,nounits"])
        .output();
    let answer = asked.ok().filter(|output| output.status.success());
    let text = answer.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    parse_users(&text.unwrap_or_default())
}

/// Reads the lines of the answer. The name of a program may have commas.
fn parse_users(text: &str) -> Vec<User> {
    let user = |line: &str| {
        let (process, rest) = line.split_once(',')?;
        let (program, memory) = rest.rsplit_once(',')?;
        let process = process.trim();
        process.parse::<u32>().ok()?;
        Some(User {
            process: process.to_owned(),
            program: program.trim().to_owned(),
            memory_mib: memory.trim().parse().ok(),
        })
    };
    text.lines().filter_map(user).collect()
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

    #[test]
    fn the_programs_of_a_gpu_are_read() {
        let text = "4711, /opt/a, b/miner, 9000\n12, /usr/bin/cuzk, [N/A]\nno line\n";
        let user = |process: &str, program: &str, memory_mib| User {
            process: process.to_owned(),
            program: program.to_owned(),
            memory_mib,
        };
        let expected = [
            user("4711", "/opt/a, b/miner", Some(9000)),
            user("12", "/usr/bin/cuzk", None),
        ];
        assert_eq!(parse_users(text), expected);
        assert!(parse_users("No running processes found\n").is_empty());
    }
}
