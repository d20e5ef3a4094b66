//! Figures in a text: numbers with a unit.
//!
//! Not the pages that have them. The invariant: a number that is part of a name, such as the size
//! of a sector, is no figure.

/// Units of figures, each with its size in seconds, bytes, bytes a second or ones. A number before
/// one of them is a figure.
const UNITS: [(&str, f64); 31] = [
    ("s", 1.0),
    ("seconds", 1.0),
    ("ms", 1e-3),
    ("µs", 1e-6),
    ("ns", 1e-9),
    ("min", 60.0),
    ("minutes", 60.0),
    ("h", 3600.0),
    ("hours", 3600.0),
    ("days", 86_400.0),
    ("bytes", 1.0),
    ("KB", 1e3),
    ("KiB", 1024.0),
    ("MB", 1e6),
    ("MiB", 1_048_576.0),
    ("GB", 1e9),
    ("GiB", 1_073_741_824.0),
    ("Gbit/s", 1.25e8),
    ("%", 0.01),
    ("times", 1.0),
    ("cycles", 1.0),
    ("threads", 1.0),
    ("lines", 1.0),
    ("proofs", 1.0),
    ("partitions", 1.0),
    ("PoSts", 1.0),
    ("PoReps", 1.0),
    ("connections", 1.0),
    ("jobs", 1.0),
    ("faults", 1.0),
    ("messages", 1.0),
];

/// Numbers in words, which count before these units.
const WORDS: [(&str, f64); 14] = [
    ("two", 2.0),
    ("three", 3.0),
    ("four", 4.0),
    ("five", 5.0),
    ("six", 6.0),
    ("seven", 7.0),
    ("eight", 8.0),
    ("nine", 9.0),
    ("ten", 10.0),
    ("twelve", 12.0),
    ("fifteen", 15.0),
    ("twenty", 20.0),
    ("thirty", 30.0),
    ("sixty", 60.0),
];
const UNITS_OF_WORDS: [&str; 4] = ["seconds", "minutes", "hours", "days"];

/// Sizes of sectors, of a number of the field and of a proof. They are names.
const NAMES: [&str; 7] = [
    "2 KiB",
    "8 MiB",
    "512 MiB",
    "32 GiB",
    "64 GiB",
    "32 bytes",
    "192 bytes",
];

/// Returns the value of a number in words.
fn value_of(word: &str) -> Option<f64> {
    let mut words = WORDS.iter();
    words
        .find(|(name, _)| *name == word)
        .map(|(_, value)| *value)
}

fn is_number(word: &str) -> bool {
    let digits = |byte: u8| byte.is_ascii_digit() || byte == b',' || byte == b'.';
    word.starts_with(|first: char| first.is_ascii_digit()) && word.bytes().all(digits)
}

/// Returns the size of a unit.
fn size_of(unit: &str) -> Option<f64> {
    let mut units = UNITS.iter();
    units.find(|(name, _)| *name == unit).map(|(_, size)| *size)
}

/// Returns the figures of a line: `5 s`, or `2 to 5 s`.
pub(crate) fn figures(line: &str) -> Vec<String> {
    let clean = |word: &str| {
        let word = word.trim_start_matches(['(', '*', '"', '[', '+', '−']);
        word.trim_end_matches(['.', ',', ';', ':', ')', '*', '"', ']', '?'])
            .to_owned()
    };
    let words: Vec<_> = line.split_whitespace().map(clean).collect();
    let raw: Vec<_> = line.split_whitespace().collect();
    let mut found = Vec::new();
    for (at, unit) in words.iter().enumerate().skip(1) {
        // A number that ends a clause has no unit after it.
        let before = &words[at - 1];
        let is_word = UNITS_OF_WORDS.contains(&unit.as_str()) && value_of(before).is_some();
        let is_number_before =
            (is_number(before) || is_word) && !raw[at - 1].ends_with([',', ';', ')']);
        if size_of(unit).is_none() || !is_number_before {
            continue;
        }
        let is_range = at >= 3 && words[at - 2] == "to" && is_number(&words[at - 3]);
        let first = if is_range { at - 3 } else { at - 1 };
        let figure = words[first..=at].join(" ");
        if !NAMES.contains(&figure.as_str()) {
            found.push(figure);
        }
    }
    found
}

/// Returns the numbers of a text, and the values of shifts such as `4 << 10`.
fn values(text: &str) -> Vec<f64> {
    let is_of_number = |letter: char| letter.is_ascii_digit() || "._".contains(letter);
    let number = |word: &str| {
        let word = word.trim_matches(|letter| !is_of_number(letter));
        word.replace('_', "").trim_end_matches('.').parse().ok()
    };
    let words: Vec<_> = text.split_whitespace().collect();
    let shifts = words.windows(3).filter_map(|shift| match shift {
        [value, "<<", bits] => {
            let bits: f64 = number(bits)?;
            Some(number(value)? * bits.exp2())
        }
        _ => None,
    });
    let separate = text.split(|letter| !is_of_number(letter));
    separate.filter_map(number).chain(shifts).collect()
}

/// Returns true if a text says each number of a figure, as it is written or in the unit of a source.
pub(crate) fn says(text: &str, figure: &str) -> bool {
    let (numbers, unit) = figure.rsplit_once(' ').unwrap();
    let size = size_of(unit).unwrap();
    let values = values(text);
    let is_said = |number: &str| {
        let parsed = || number.replace(',', "").parse().unwrap();
        let number: f64 = value_of(number).unwrap_or_else(parsed);
        let is_it = |value: &f64| (value / (number * size) - 1.0).abs() < 1e-9;
        values.iter().any(is_it)
    };
    text.contains(figure) || numbers.split(" to ").all(is_said)
}

#[test]
fn a_figure_that_a_source_does_not_say_is_found() {
    for (text, right, wrong) in [
        (
            "const LEASE: Duration = Duration::from_secs(30);",
            "30 s",
            "60 s",
        ),
        ("const PEEK_BYTES: usize = 4 << 10;", "4 KiB", "4 MiB"),
        ("const CHANCE_MAX: f64 = 0.05;", "5 %", "50 %"),
        ("    0.001, 1_200.0,", "1 ms", "1.2 s"),
        ("    0.001, 1_200.0,", "20 minutes", "12 minutes"),
        ("# with 24 GiB of memory", "24 GiB", "24 GB"),
        ("Duration::from_secs(300)", "five minutes", "five seconds"),
        (
            "pub const PROOFS_MAX: usize = 1 << 14;",
            "16,384 proofs",
            "16 proofs",
        ),
    ] {
        assert!(says(text, right), "{text}: {right}");
        assert!(!says(text, wrong), "{text}: {wrong}");
    }
}

#[test]
fn figures_are_found_in_prose_and_tables() {
    let found = |line| figures(line);
    assert_eq!(
        found("It took 5 s, or 2 to 3.5 MB (7 %)."),
        ["5 s", "2 to 3.5 MB", "7 %"]
    );
    assert_eq!(found("| witness | 0.16 s and 95 MB |"), ["0.16 s", "95 MB"]);
    assert_eq!(
        found("A sector of 32 GiB has 10 partitions, of s 2."),
        ["10 partitions"]
    );
    assert_eq!(
        found("It waits for five seconds, in two lines."),
        ["five seconds"]
    );
}
