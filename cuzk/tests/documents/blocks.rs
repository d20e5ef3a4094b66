//! The blocks of a document, the commands in those of the shell, and the output that it shows of
//! them.

use std::fmt;

/// A block of a document, between two lines of three backticks.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) document: String,
    /// The line at which it begins.
    pub(crate) line: usize,
    /// The word after the backticks.
    pub(crate) language: String,
    /// Its lines, each with its end.
    pub(crate) text: String,
}

/// Returns all blocks, also those that a reader would not expect: indented ones, and such as begin
/// with tildes.
pub(crate) fn blocks_in(document: &str, text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_inside = false;
    for (index, line) in text.lines().enumerate() {
        let fence = ["```", "~~~"]
            .iter()
            .find_map(|fence| line.trim_start().strip_prefix(fence));
        match (fence, is_inside) {
            (Some(_), true) => is_inside = false,
            (Some(language), false) => {
                is_inside = true;
                blocks.push(Block {
                    document: document.to_owned(),
                    line: index + 1,
                    language: match line.starts_with("```") {
                        true => language.to_owned(),
                        false => line.to_owned(),
                    },
                    text: String::new(),
                });
            }
            (None, true) => {
                let block = blocks.last_mut();
                block
                    .into_iter()
                    .for_each(|block| block.text += &format!("{line}\n"));
            }
            (None, false) => {}
        }
    }
    blocks
}

/// A command that a document shows.
pub(crate) struct Shown {
    pub(crate) document: String,
    pub(crate) line: usize,
    /// The command, without its comment.
    pub(crate) command: String,
    /// The line at which its block begins.
    pub(crate) block: usize,
    /// The last lines that the commands of the block print, on the last of these commands.
    pub(crate) prints: Vec<String>,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: `{}`", self.document, self.line, self.command)
    }
}

/// Returns the commands of all blocks that begin with three backticks and `sh`. A line that
/// ends with a backslash or a pipe goes on with the next one. A block of `text` right after a block
/// is what it prints.
pub(crate) fn shown_in(document: &str, text: &str) -> Vec<Shown> {
    let mut commands: Vec<Shown> = Vec::new();
    let mut block = None;
    let (mut is_output, mut has_ended) = (false, false);
    let mut open: Option<Shown> = None;
    for (index, line) in text.lines().enumerate() {
        match line.trim_end() {
            "```sh" => block = Some(index + 1),
            "```text" if has_ended => is_output = true,
            "```" => {
                has_ended = block.take().is_some();
                is_output = false;
            }
            line if is_output => {
                let last = commands.last_mut();
                last.into_iter()
                    .for_each(|shown| shown.prints.push(line.to_owned()));
            }
            "" if block.is_none() => {}
            line => {
                let Some(block) = block else {
                    has_ended = false;
                    continue;
                };
                let line = without_comment(line);
                if line.is_empty() {
                    continue;
                }
                let shown = match open.take() {
                    Some(mut before) => {
                        before.command.push(' ');
                        before.command.push_str(line);
                        before
                    }
                    None => Shown {
                        document: document.to_owned(),
                        line: index + 1,
                        command: line.to_owned(),
                        block,
                        prints: Vec::new(),
                    },
                };
                match shown.command.strip_suffix('\\') {
                    Some(part) => {
                        let command = part.trim_end().to_owned();
                        open = Some(Shown { command, ..shown });
                    }
                    None if shown.command.ends_with('|') => open = Some(shown),
                    None => commands.push(shown),
                }
            }
        }
    }
    commands
}

/// Returns the lines without their numbers, which differ from machine to machine, and without
/// spaces at the end. A column may have another width with another number.
fn words(line: &str) -> String {
    let is_number = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '+' | '-');
    let parts = line.split_whitespace();
    let without = parts.map(|part| match part.starts_with(is_number) {
        true => part.trim_start_matches(is_number),
        false => part,
    });
    without.collect::<Vec<_>>().join(" ")
}

/// Returns what differs between the lines that a document shows and the last ones that were
/// printed.
pub(crate) fn difference(shown: &[String], printed: &str) -> Option<String> {
    let printed: Vec<_> = printed.lines().collect();
    let last = printed.len().saturating_sub(shown.len());
    let mut pairs = shown.iter().zip(printed[last..].iter().copied());
    if printed.len() < shown.len() {
        return Some(format!("prints {} lines only", printed.len()));
    }
    let (shown, printed) = pairs.find(|(shown, printed)| words(shown) != words(printed))?;
    Some(format!("shows\n{shown}\nand prints\n{printed}"))
}

/// Returns a line without its comment and the space around it.
fn without_comment(line: &str) -> &str {
    let line = line.trim();
    if line.starts_with('#') {
        return "";
    }
    line.split(" #").next().unwrap_or_default().trim_end()
}

#[test]
fn commands_go_on_over_lines_and_lose_their_comments() {
    let text = "x\n```sh\n# all\na b   # c\nd \\\n    e\nf |\n  g\n```\nh\n```rust\ni\n```\n";
    let shown: Vec<_> = shown_in("d.md", text).into_iter().collect();
    let commands: Vec<_> = shown.iter().map(|shown| shown.command.as_str()).collect();
    assert_eq!(commands, ["a b", "d e", "f | g"]);
    assert_eq!(shown[1].to_string(), "d.md:5: `d e`");
}

#[test]
fn a_block_of_text_after_commands_is_what_they_print() {
    let text = "```sh\na\nb\n```\n\n```text\nin 1.5 s\n\ndone\n```\n```text\nx\n```\n```sh\nc\n```\n\
                words\n```text\ny\n```\n";
    let shown = shown_in("d.md", text);
    assert_eq!(shown[1].prints, ["in 1.5 s", "", "done"]);
    assert!(shown[0].prints.is_empty() && shown[2].prints.is_empty());
    assert_eq!(shown[0].block, shown[1].block);
    let of = |printed| difference(&shown[1].prints, printed);
    assert_eq!(of("before\nin 12 s\n\ndone\n"), None);
    assert!(of("in 12 ms\n\ndone\n").unwrap().contains("in 12 ms"));
    assert!(of("in 1.5 s\n\ndone\nafter\n").is_some());
    assert!(of("done\n").is_some());
}

#[test]
fn every_block_is_found_with_its_language() {
    let text = "```sh\na\n```\n  ```\nb\n  ```\n~~~rust\n~~~\n```json x\n{\n}\n```\n";
    let blocks = blocks_in("d.md", text);
    let languages: Vec<_> = blocks.iter().map(|block| &block.language[..]).collect();
    assert_eq!(languages, ["sh", "  ```", "~~~rust", "json x"]);
    assert_eq!((blocks[3].line, &blocks[3].text[..]), (9, "{\n}\n"));
}
