//! Texts as a terminal may get them: without control characters, which could move its cursor
//! or make up a line. Marks of direction are absent, too: they could turn a name round. Errors of
//! arguments have no password.
//!
//! Not the output. The invariant: a name of a file has no line break.

use std::path::Path;

/// Returns the name of a file without control characters, which could change what a terminal
/// shows.
pub(crate) fn shown(path: &Path) -> String {
    escaped(&path.display().to_string(), |_| false)
}

/// Returns a text of several lines without other control characters.
pub(crate) fn harmless(text: &str) -> String {
    escaped(text, |letter| matches!(letter, '\n' | '\t'))
}

/// Returns a text with its control characters as escapes, but for those that are kept.
fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match (letter.is_control() || turns(letter)) && !is_kept(letter) {
            true => out.extend(letter.escape_default()),
            false => out.push(letter),
        }
    }
    out
}

/// Returns true if a letter changes the direction of those after it: "gpj.exe" could look like
/// "exe.jpg".
pub(crate) fn turns(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns a text without the users and the passwords of its addresses.
pub(crate) fn without_users(text: &str) -> String {
    let words = text.split_inclusive(char::is_whitespace);
    words.map(without_user).collect()
}

fn without_user(word: &str) -> String {
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((_, host)) = rest.rsplit_once('@')
        // It is the path of a socket.
        && !rest.starts_with('/')
    {
        return format!("{scheme}://…@{host}");
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_move_the_cursor_or_begin_a_line() {
        assert_eq!(shown(Path::new("a\x1b[2Jb\nc")), "a\\u{1b}[2Jb\\nc");
        assert_eq!(harmless("one\n\ttwo\r\u{9b}2J"), "one\n\ttwo\\r\\u{9b}2J");
        assert_eq!(shown(Path::new("Größe.json")), "Größe.json");
        assert_eq!(shown(Path::new("a\u{202e}nosj.b")), "a\\u{202e}nosj.b");
    }

    #[test]
    fn an_address_has_no_password() {
        for (text, expected) in [
            ("a 'http://u:p@h/' for\n\n b", "a 'http://…@h/' for\n\n b"),
            ("ipfs://http://u:p/@@h", "ipfs://…@h"),
            ("'unix:///run/a@b/c' is", "'unix:///run/a@b/c' is"),
            ("mail u@h http://h:1/x", "mail u@h http://h:1/x"),
        ] {
            assert_eq!(without_users(text), expected);
        }
    }
}
