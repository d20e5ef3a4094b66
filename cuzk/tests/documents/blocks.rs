//! The commands in the shell blocks of a document.

use std::fmt;

/// A command that a document shows.
pub(crate) struct Shown {
    pub(crate) document: String,
    pub(crate) line: usize,
    /// The command, without its comment.
    pub(crate) command: String,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: `{}`", self.document, self.line, self.command)
    }
}

/// Returns the commands of all blocks that begin with three backticks and `sh`. A line that
/// ends with a backslash or a pipe goes on with the next one.
pub(crate) fn shown_in(document: &str, text: &str) -> Vec<Shown> {
    let mut commands = Vec::new();
    let mut is_inside = false;
    let mut open: Option<Shown> = None;
    for (index, line) in text.lines().enumerate() {
        match line.trim_end() {
            "```sh" => is_inside = true,
            "```" => is_inside = false,
            line if is_inside => {
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
            _ => {}
        }
    }
    commands
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
