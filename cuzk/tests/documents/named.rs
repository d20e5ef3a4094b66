//! The commands that sentences and tables of the documents name: each is one of the program, and so
//! is each of its options.

use std::collections::BTreeMap;
use std::process::Command;

use cuzk_bounded::BoundedCommand;

use crate::documents;

/// Returns what stands between two backticks, outside of blocks. It may go on on the next line.
fn named_in(text: &str) -> Vec<String> {
    let mut is_inside = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_inside ^= is_fence;
        !is_inside && !is_fence
    });
    let outside = lines.collect::<Vec<_>>().join("\n");
    // A code does not go beyond its paragraph.
    let paragraphs = outside.split("\n\n");
    let codes = paragraphs.flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2));
    codes
        .map(|code| code.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// Returns the words of a command before its options and its arguments in capitals.
fn subcommand(named: &str) -> Vec<&str> {
    let words = named.split(' ').skip(1);
    let is_word = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_lowercase());
    words.take_while(is_word).collect()
}

/// Returns the options of a command, such as `--kind`.
fn options(named: &str) -> Vec<&str> {
    let is_of_name = |letter: char| letter == '-' || letter.is_ascii_alphanumeric();
    let words = named.split(|letter: char| !is_of_name(letter));
    words.filter(|word| word.starts_with("--")).collect()
}

/// Returns the help text of a command, or what the program says against it.
fn help(words: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_cuzk"))
        .args(words)
        .arg("--help")
        .output_bounded()
        .unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

fn problem(named: &str, helps: &mut BTreeMap<String, Result<String, String>>) -> Option<String> {
    let words = subcommand(named);
    let help = helps.entry(words.join(" ")).or_insert_with(|| help(&words));
    let help = match help {
        Ok(help) => help,
        Err(problem) => return Some(problem.clone()),
    };
    let shown = options(help);
    let unknown = options(named)
        .into_iter()
        .find(|option| !shown.contains(option));
    unknown.map(|option| format!("{option} is no option"))
}

#[test]
fn every_command_that_a_sentence_names_is_there_with_its_options() {
    let mut helps = BTreeMap::new();
    let (mut problems, mut count) = (Vec::new(), 0);
    for (document, text) in documents() {
        let named = named_in(&text);
        for named in named.iter().filter(|code| code.starts_with("cuzk ")) {
            // It stands for all of them.
            if named.contains("COMMAND") {
                continue;
            }
            count += 1;
            let problem = problem(named, &mut helps);
            problems.extend(problem.map(|problem| format!("{document}: `{named}`: {problem}")));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count > 100, "only {count} commands are named");
}

#[test]
fn a_named_command_with_a_mistake_is_found() {
    let text = "a `cuzk prove\n--nobody` b `c`\n\n```sh\n`d`\n```\n`cuzk walk`";
    let named = named_in(text);
    assert_eq!(named, ["cuzk prove --nobody", "c", "cuzk walk"]);
    let mut helps = BTreeMap::new();
    assert!(problem(&named[0], &mut helps).is_some());
    assert!(problem(&named[2], &mut helps).is_some());
    let right = "cuzk params list [--check] [--digests FILE]";
    assert_eq!(problem(right, &mut helps), None);
}
