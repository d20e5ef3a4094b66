//! The sizes of a run of the cell's target, from its arguments.
//!
//! `cargo bench -p benches --bench cell -- --threads 1,2,8 --instances 16,64` names them.
//! Criterion does not know these arguments. With any of them it gets none of its own.

use crate::Result;

/// The lists that the arguments name. A list that is not named is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Threads that run machines, each one machine at a time.
    pub threads: Option<Vec<usize>>,
    /// Machines in all.
    pub instances: Option<Vec<usize>>,
    /// Cells of a machine.
    pub cells: Option<Vec<u64>>,
    /// Rounds that the figures are taken over.
    pub rounds: Option<usize>,
}

impl Sizes {
    /// Reads the arguments `--threads`, `--instances` and `--cells`, each with a list such
    /// as `1,2,8`, and `--rounds` with a count. Leaves criterion's arguments alone.
    ///
    /// # Errors
    /// A value that is missing, is no number, or is zero.
    pub fn of(args: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut sizes = Sizes::default();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut list = || list(&arg, args.next());
            match arg.as_str() {
                "--threads" => sizes.threads = Some(counts(list()?)?),
                "--instances" => sizes.instances = Some(counts(list()?)?),
                "--cells" => sizes.cells = Some(list()?),
                "--rounds" => sizes.rounds = counts(list()?)?.first().copied(),
                _ => {}
            }
        }
        Ok(sizes)
    }

    /// Returns true if no argument named a size.
    pub fn is_default(&self) -> bool {
        *self == Sizes::default()
    }
}

fn list(name: &str, value: Option<String>) -> Result<Vec<u64>> {
    let value = value.unwrap_or_default();
    let numbers: std::result::Result<Vec<u64>, _> = value.split(',').map(str::parse).collect();
    match numbers {
        Ok(numbers) if !numbers.contains(&0) => Ok(numbers),
        _ => Err(format!("{name}: expected counts such as 1,2,8, got {value:?}").into()),
    }
}

fn counts(numbers: Vec<u64>) -> Result<Vec<usize>> {
    let counts: std::result::Result<_, _> = numbers.into_iter().map(usize::try_from).collect();
    Ok(counts?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(args: &str) -> Result<Sizes> {
        Sizes::of(args.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn lists_are_read_and_criterions_arguments_are_left_alone() {
        assert!(of("--bench some-filter").unwrap().is_default());
        let sizes = of("--bench --threads 1,2,8 --instances 16 --cells 64,65536 --rounds 3");
        let expected = Sizes {
            threads: Some(vec![1, 2, 8]),
            instances: Some(vec![16]),
            cells: Some(vec![64, 65536]),
            rounds: Some(3),
        };
        assert_eq!(sizes.unwrap(), expected);
    }

    #[test]
    fn a_wrong_list_is_told_with_its_argument() {
        for wrong in [
            "--threads",
            "--threads 1,x",
            "--threads 0",
            "--threads 1,,2",
        ] {
            let error = of(wrong).unwrap_err().to_string();
            assert!(error.contains("--threads: expected counts"), "{error}");
        }
    }
}
