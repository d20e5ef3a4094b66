//! Comparison of a listing with the committed file.

/// Returns the differences, sorted by path: `-` before a committed line that is gone, `+`
/// before a new one. None if both have the same lines.
#[must_use]
pub fn difference(committed: &str, now: &[String]) -> Option<String> {
    let before: Vec<&str> = committed.lines().collect();
    let gone = before.iter().filter(|line| !now.iter().any(|n| n == *line));
    let new = now.iter().filter(|line| !before.contains(&line.as_str()));
    let mut lines: Vec<(&str, char)> = gone.map(|line| (*line, '-')).collect();
    lines.extend(new.map(|line| (line.as_str(), '+')));
    lines.sort_by_key(|(line, sign)| (path(line), *sign == '+', *line));
    let shown = lines.iter().map(|(line, sign)| format!("{sign} {line}\n"));
    (!lines.is_empty()).then(|| shown.collect())
}

/// Returns the part of a line before its text.
fn path(line: &str) -> &str {
    line.split_once(": ").map_or(line, |(path, _)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_is_shown_before_and_after() {
        let now = ["a: 1", "b: 3"].map(str::to_owned);
        assert_eq!(
            difference("a: 1\nb: 2\n", &now).as_deref(),
            Some("- b: 2\n+ b: 3\n")
        );
    }

    #[test]
    fn equal_listings_have_no_difference() {
        assert_eq!(difference("a: 1\n", &["a: 1".to_owned()]), None);
    }
}
