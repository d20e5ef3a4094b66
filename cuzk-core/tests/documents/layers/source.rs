//! The paths that a Rust source names, read without a compiler.
//!
//! Not a parser: comments, texts and tests are left out, and of the rest only paths are
//! looked at. A path through a name that a macro makes is not seen.

/// A path, segment by segment, as it is written.
pub(super) type Path = Vec<String>;

/// What a source imports and names.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Each `use`: the name that it brings into the module, and the path that it is for.
    pub(super) imports: Vec<(String, Path)>,
    /// Paths elsewhere.
    pub(super) paths: Vec<Path>,
}

impl Source {
    pub(super) fn read(text: &str) -> Self {
        let tokens = without_tests(&tokens(text));
        let mut source = Self::default();
        let mut rest = &tokens[..];
        while let Some((token, after)) = rest.split_first() {
            if token == "use" {
                let mut tree = Tree { rest: after };
                tree.read(&mut Path::new(), &mut source.imports);
                rest = tree.rest;
            } else if is_name(token) {
                let (path, after) = plain_path(rest);
                if path.len() > 1 {
                    source.paths.push(path);
                }
                rest = after;
            } else {
                rest = after;
            }
        }
        source
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// The names at the beginning of `tokens` that `::` joins.
fn plain_path(tokens: &[String]) -> (Path, &[String]) {
    let mut path = vec![tokens[0].clone()];
    let mut rest = &tokens[1..];
    while let [separator, name, after @ ..] = rest
        && separator == "::"
        && is_name(name)
    {
        path.push(name.clone());
        rest = after;
    }
    (path, rest)
}

/// The tree of a `use`.
struct Tree<'a> {
    rest: &'a [String],
}

impl Tree<'_> {
    fn next(&mut self) -> Option<String> {
        let (token, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(token.clone())
    }

    /// Reads one branch below `prefix`, up to what ends it.
    fn read(&mut self, prefix: &mut Path, imports: &mut Vec<(String, Path)>) {
        let depth = prefix.len();
        let mut name = None;
        while let Some(token) = self.next() {
            match token.as_str() {
                "::" => {}
                "as" => name = self.next(),
                "{" => {
                    while !matches!(self.rest.first().map(String::as_str), None | Some("}")) {
                        self.read(prefix, imports);
                    }
                    self.next();
                    name = Some(String::new());
                }
                "," | ";" => break,
                _ => prefix.push(token),
            }
            if self.rest.first().is_some_and(|next| next == "}") {
                break;
            }
        }
        if prefix.last().is_some_and(|last| last == "self") && depth > 0 {
            prefix.pop();
        }
        let name = name.or_else(|| prefix.last().cloned());
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            imports.push((name, prefix.clone()));
        }
        prefix.truncate(depth);
    }
}

/// The tokens without items under `#[cfg(test)]`.
fn without_tests(tokens: &[String]) -> Vec<String> {
    const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut left = Vec::new();
    let mut rest = tokens;
    while let Some((token, after)) = rest.split_first() {
        if rest.len() >= TEST.len() && rest.iter().zip(TEST).all(|(token, test)| token == test) {
            rest = after_item(&rest[TEST.len()..]);
        } else {
            left.push(token.clone());
            rest = after;
        }
    }
    left
}

/// What follows the item at the beginning of `tokens`.
fn after_item(tokens: &[String]) -> &[String] {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(token.as_str(), "}" | ";") {
            return &tokens[at + 1..];
        }
    }
    &[]
}

/// Names, `::`, and every other character that is neither space nor in a comment or text.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(length) = text_literal(rest) {
            length
        } else if first.is_alphanumeric() || first == '_' {
            let end = |next: char| !next.is_alphanumeric() && next != '_';
            let length = rest.find(end).unwrap_or(rest.len());
            tokens.push(rest[..length].to_owned());
            length
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// The length of the text or character at the beginning, if there is one.
fn text_literal(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""];
    let start = prefix.iter().find_map(|prefix| {
        let rest = text.strip_prefix(prefix)?;
        let is_raw = prefix.ends_with('r');
        let quote = rest.trim_start_matches('#');
        let hashes = rest.len() - quote.len();
        let is_text = quote.starts_with('"') && (is_raw || hashes == 0);
        is_text.then_some((prefix.len(), is_raw, hashes))
    });
    if let Some((prefix, is_raw, hashes)) = start {
        let body = prefix + hashes + 1;
        let end = format!("\"{}", "#".repeat(hashes));
        let length = if is_raw {
            text[body..].find(&end)? + end.len()
        } else {
            end_of_text(&text[body..], '"')?
        };
        return Some(body + length);
    }
    // A lifetime has no second quote right after its first character.
    let rest = text.strip_prefix('\'')?;
    let first = rest.chars().next()?;
    let is_character = first == '\\' || rest[first.len_utf8()..].starts_with('\'');
    is_character.then(|| end_of_text(rest, '\'').map(|length| length + 1))?
}

/// Where the text ends that `quote` ends, the quote counted.
fn end_of_text(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, next) in text.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if next == '\\' {
            is_escaped = true;
        } else if next == quote {
            return Some(at + 1);
        }
    }
    None
}
