//! Figures in a text: numbers with a unit.
//!
//! Not the pages that have them. The invariant: a number that is part of a name, such as the size
//! of a sector, is no figure.

/// Units of figures, each with its size in seconds, bytes, bytes a second or ones. A number before
/// one of them is a figure.
const UNITS: [(&str, f64); 58] = [
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
    ("million", 1e6),
    ("billion", 1e9),
    ("constraints", 1.0),
    ("rows", 1.0),
    ("variables", 1.0),
    ("points", 1.0),
    ("windows", 1.0),
    ("challenges", 1.0),
    ("sectors", 1.0),
    ("circuits", 1.0),
    ("requests", 1.0),
    ("tokens", 1.0),
    ("cores", 1.0),
    ("GPUs", 1.0),
    ("machines", 1.0),
    ("workers", 1.0),
    ("servers", 1.0),
    ("files", 1.0),
    ("seeds", 1.0),
    ("tests", 1.0),
    ("mutants", 1.0),
    ("decoders", 1.0),
    ("bugs", 1.0),
    ("runs", 1.0),
    ("rounds", 1.0),
    ("preemptions", 1.0),
    ("interleavings", 1.0),
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

/// Sizes of sectors, of a number of the field, of a proof and of the machines that figures are of.
/// They are names.
const NAMES: [&str; 8] = [
    "2 cores",
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

/// Returns true for digits with commas and a point, and for a power of ten such as `10^6`.
fn is_number(word: &str) -> bool {
    let digits = |byte: u8| byte.is_ascii_digit() || byte == b',' || byte == b'.';
    let word = word.strip_prefix("10^").unwrap_or(word);
    word.starts_with(|first: char| first.is_ascii_digit()) && word.bytes().all(digits)
}

/// Returns the value of a number that [`is_number`] knows.
fn parse(number: &str) -> f64 {
    match number.strip_prefix("10^") {
        Some(power) => 10_f64.powf(power.parse().unwrap()),
        None => number.replace(',', "").parse().unwrap(),
    }
}

/// Returns the size of a unit.
fn size_of(unit: &str) -> Option<f64> {
    let mut units = UNITS.iter();
    units.find(|(name, _)| *name == unit).map(|(_, size)| *size)
}

/// Returns a word without the marks around it.
fn clean(word: &str) -> &str {
    let word = word.trim_start_matches(['(', '*', '"', '[', '+', '−']);
    word.trim_end_matches(['.', ',', ';', ':', ')', '*', '"', ']', '?'])
}

/// Returns the cells of a row of a table.
fn cells(row: &str) -> impl Iterator<Item = &str> {
    row.trim().trim_matches('|').split('|').map(str::trim)
}

/// Returns the unit that the heading of a column gives to numbers below it.
fn unit_of(heading: &str) -> Option<&str> {
    let mut words = heading.split_whitespace().map(clean);
    words.find_map(|word| match word {
        "ratio" | "faster" => Some("times"),
        "s/proof" => Some("s"),
        _ => size_of(word).map(|_| word),
    })
}

/// Returns the figures of a row whose units are in the heading of the table: `14.0` below `ratio` is
/// `14.0 times`.
pub(crate) fn figures_below(heading: &str, row: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (heading, cell) in cells(heading).zip(cells(row)) {
        let Some(unit) = unit_of(heading) else {
            continue;
        };
        let words: Vec<_> = cell.split_whitespace().map(clean).collect();
        let numbers = words.iter().filter(|word| is_number(word));
        let are_others = words.iter().any(|word| !is_number(word) && *word != "and");
        if !are_others {
            found.extend(numbers.map(|number| format!("{number} {unit}")));
        }
    }
    found.retain(|figure| !NAMES.contains(&figure.as_str()));
    found
}

/// Returns the figures of a line: `5 s`, or `2 to 5 s`.
pub(crate) fn figures(line: &str) -> Vec<String> {
    let words: Vec<_> = line.split_whitespace().map(clean).collect();
    let raw: Vec<_> = line.split_whitespace().collect();
    let mut found = Vec::new();
    for (at, unit) in words.iter().enumerate().skip(1) {
        // A number that ends a clause has no unit after it.
        let before = &words[at - 1];
        let is_word = UNITS_OF_WORDS.contains(unit) && value_of(before).is_some();
        let is_number_before =
            (is_number(before) || is_word) && !raw[at - 1].ends_with([',', ';', ')']);
        if size_of(unit).is_none() || !is_number_before {
            continue;
        }
        let is_range = at >= 3 && words[at - 2] == "to" && is_number(words[at - 3]);
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
        let number = value_of(number).unwrap_or_else(|| parse(number));
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
        ("const SEEDS: u64 = 10_000;", "10^4 seeds", "10^6 seeds"),
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
    assert_eq!(
        found("It has 7.5 million proofs, 10^6 seeds and 130,278,541 constraints on 2 cores."),
        ["7.5 million", "10^6 seeds", "130,278,541 constraints"]
    );
}

#[test]
fn numbers_below_a_unit_are_figures() {
    let found = |heading, row| figures_below(heading, row);
    assert_eq!(
        found("| a | ratio |", "| x | 15.3; 7.2 |"),
        ["15.3 times", "7.2 times"]
    );
    assert_eq!(found("| workers | a |", "| 1,000 | 5 |"), ["1,000 workers"]);
    assert_eq!(found("| s/proof |", "| 25.0 |"), ["25.0 s"]);
    // A cell with a unit of its own, or with words, has no number without one.
    assert!(found("| ratio |", "| 5 s |").is_empty());
    assert!(found("| ratio |", "| as in 2026 |").is_empty());
}
