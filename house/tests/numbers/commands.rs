//! The commands that print figures.
//!
//! Not the figures. Only `grep` and `head` over the sources are run here. Of a command of Cargo,
//! the target and the test that it names are looked for.

use std::path::Path;

use house::sources::Sources;

/// The beginnings of commands.
const PROGRAMS: [&str; 11] = [
    "cuzk ",
    "cargo ",
    ".ci/",
    "benches/",
    "grep ",
    "head ",
    "supraseal-sys/",
    "CUZK_",
    "du ",
    "ls ",
    "/usr/bin/time ",
];

/// Returns true if a line has a command for its figures. Most rows of tables have.
pub(crate) fn has_command(line: &str) -> bool {
    let mut quoted = line.split('`').skip(1).step_by(2);
    quoted.any(|text| PROGRAMS.iter().any(|program| text.starts_with(program)))
        || line.contains("| the same")
}

/// Returns what `grep -n [-A LINES] PATTERN FILE` or `head -n LINES FILE...` prints, and none for
/// another command.
pub(crate) fn printed(command: &str, sources: &dyn Sources) -> Option<String> {
    let words: Vec<_> = command.split_whitespace().collect();
    let (pattern, count, files) = match words[..] {
        ["grep", "-n", "-A", after, pattern, file] => (pattern, after, vec![file]),
        ["grep", "-n", pattern, file] => (pattern, "0", vec![file]),
        ["head", "-n", count, ..] => ("", count, words[3..].to_vec()),
        _ => return None,
    };
    let count: usize = count.parse().unwrap();
    let mut lines = Vec::new();
    for file in files {
        let text = sources.text(Path::new(file)).unwrap();
        let mut left = if pattern.is_empty() { count } else { 0 };
        for line in text.lines() {
            if !pattern.is_empty() && line.contains(pattern) {
                left = count + 1;
            }
            if left > 0 {
                left -= 1;
                lines.push(line.to_owned());
            }
        }
    }
    Some(lines.join("\n"))
}

/// Returns true if a cell has commands only. Other words say what follows from what they print.
pub(crate) fn is_commands_only(cell: &str) -> bool {
    let mut outside = cell.split('`').step_by(2);
    outside.all(|between| matches!(between.trim(), "" | "," | "and"))
}

/// Returns what is wrong with a command of Cargo: it names a target or a test that is not there.
pub(crate) fn problem_of_cargo(command: &str, files: &[(String, String)]) -> Option<String> {
    let words: Vec<_> = command.split_whitespace().collect();
    let folders = [
        ("--test", "tests"),
        ("--bench", "benches"),
        ("--example", "examples"),
    ];
    for pair in words.windows(2) {
        let Some((_, folder)) = folders.iter().find(|(option, _)| *option == pair[0]) else {
            continue;
        };
        let ends = [
            format!("{folder}/{}.rs", pair[1]),
            format!("{folder}/{}/main.rs", pair[1]),
        ];
        let is_it = |path: &str| ends.iter().any(|end| path.ends_with(end.as_str()));
        if !files.iter().any(|(path, _)| is_it(path)) {
            return Some(format!("no {} {}", pair[0], pair[1]));
        }
    }
    // The last word of a run of tests is a part of the names of tests.
    let name = words.last()?;
    if words[1] != "test" || !words.contains(&"--") || !name.contains('_') {
        return None;
    }
    let functions = files.iter().flat_map(|(_, text)| text.split("fn ").skip(1));
    let is_it = |rest: &&str| {
        let named = rest.split('(').next();
        named.is_some_and(|of| of.contains(name))
    };
    let bodies: Vec<_> = functions.filter(is_it).collect();
    let is_silent =
        words.contains(&"--nocapture") && !bodies.iter().any(|body| body.contains("println!"));
    match (bodies.is_empty(), is_silent) {
        (true, _) => Some(format!("no test {name}")),
        (false, true) => Some(format!("the test {name} prints nothing")),
        (false, false) => None,
    }
}

#[test]
fn a_command_of_cargo_with_a_mistake_is_found() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let files = [
        file(
            "a/tests/kinds/main.rs",
            "#[test]\nfn one_partition() { println!(); }\nfn in_silence() {}",
        ),
        file("a/benches/b.rs", ""),
    ];
    let problem = |command| problem_of_cargo(command, &files);
    assert_eq!(
        problem("cargo test --workspace --test kinds -- --nocapture one_part"),
        None
    );
    assert_eq!(problem("cargo bench -p a --bench b"), None);
    assert!(problem("cargo test --workspace --test kind -- one_part").is_some());
    assert!(problem("cargo test --workspace --test kinds -- two_part").is_some());
    assert!(problem("cargo test --workspace --test kinds -- --nocapture in_silence").is_some());
    assert!(problem("cargo bench --bench c").is_some());
}
