//! The rules, and the places in a passage that break them.

use crate::text::{self, Kind, Passage};

/// A rule that a sentence can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A docstring begins with "Whether", "The same", "What", "Who" or "Whoever".
    DocstringStart,
    /// The subject of a sentence is a clause: "What is made is kept."
    ClauseSubject,
    /// A sentence of a document or docstring has too many words.
    LongSentence,
    /// A word that the glossary replaced by the field's term.
    OldName,
}

const WORDS_MAX: usize = 25;

const CLAUSE_STARTS: [&str; 3] = ["what", "who", "whoever"];

/// Words that stood for something that the field has a name for.
const OLD_NAMES: [&str; 28] = [
    "acquitted",
    "bell",
    "bells",
    "beside pool",
    "beside pools",
    "blame",
    "blamed",
    "book",
    "hindrance",
    "hindrances",
    "owed",
    "stake",
    "stakes",
    "station",
    "stations",
    "strand",
    "stranded",
    "strands",
    "sum in g1",
    "sum in g2",
    "sum over b",
    "sums in g1",
    "sums in g2",
    "sums over b",
    "sums over l",
    "suspect",
    "unhindered",
    "upkeep",
];

impl Rule {
    pub const ALL: [Self; 4] = [
        Self::DocstringStart,
        Self::ClauseSubject,
        Self::LongSentence,
        Self::OldName,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::DocstringStart => "docstring-start",
            Self::ClauseSubject => "clause-subject",
            Self::LongSentence => "long-sentence",
            Self::OldName => "old-name",
        }
    }
}

/// Returns each rule that a passage breaks, with the words that break it.
pub fn broken(passage: &Passage) -> Vec<(Rule, String)> {
    let mut found = Vec::new();
    let plain = text::without_markup(&passage.text);
    for (at, sentence) in text::sentences(&plain).into_iter().enumerate() {
        let is_first = at == 0;
        if is_first && passage.kind == Kind::DocstringStart && starts_badly(&sentence) {
            found.push((Rule::DocstringStart, sentence.clone()));
        } else if has_clause_subject(&sentence) {
            found.push((Rule::ClauseSubject, sentence.clone()));
        }
        if is_counted(passage) && longest_part(passage.kind, &sentence) > WORDS_MAX {
            found.push((Rule::LongSentence, sentence));
        }
    }
    // Documents name paths and commands in code spans; comments name types there.
    let named = match passage.kind {
        Kind::Document => &plain,
        _ => &passage.text,
    };
    found.extend(old_names(named).map(|name| (Rule::OldName, name.to_owned())));
    found
}

fn is_counted(passage: &Passage) -> bool {
    match passage.kind {
        Kind::Document | Kind::DocstringStart | Kind::Docstring => true,
        Kind::Comment | Kind::Message => passage.class == text::Class::Visible,
    }
}

/// Counts the words of a sentence. An error says what is wrong; and what to do: each is counted.
fn longest_part(kind: Kind, sentence: &str) -> usize {
    match kind {
        Kind::Message => sentence.split("; ").map(words).max().unwrap_or(0),
        _ => words(sentence),
    }
}

fn words(sentence: &str) -> usize {
    let words = sentence.split_whitespace();
    words
        .filter(|word| word.contains(char::is_alphanumeric))
        .count()
}

fn starts_badly(sentence: &str) -> bool {
    let mut words = sentence.split_whitespace().map(str::to_lowercase);
    match words.next().as_deref() {
        Some("whether") => true,
        Some("the") => words.next().as_deref() == Some("same"),
        Some(word) => CLAUSE_STARTS.contains(&word),
        None => false,
    }
}

fn has_clause_subject(sentence: &str) -> bool {
    let mut words = sentence.split_whitespace();
    let first = words.next().unwrap_or_default().to_lowercase();
    // One or two words are a label or a key.
    CLAUSE_STARTS.contains(&first.as_str()) && words.count() >= 2 && !sentence.ends_with('?')
}

/// Finds the replaced words that a text has, as whole words.
fn old_names(text: &str) -> impl Iterator<Item = &'static str> {
    let lower = text.to_lowercase();
    let words = lower.split(|symbol: char| !symbol.is_alphanumeric() && symbol != '_');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let text = format!(" {} ", words.join(" "));
    OLD_NAMES.into_iter().flat_map(move |name| {
        let count = text.matches(&format!(" {name} ")).count();
        std::iter::repeat_n(name, count)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Class;

    fn rules(kind: Kind, text: &str) -> Vec<Rule> {
        let passage = Passage {
            class: Class::Code,
            kind,
            line: 1,
            text: text.to_owned(),
        };
        broken(&passage).into_iter().map(|(rule, _)| rule).collect()
    }

    #[test]
    fn docstrings_begin_with_what_they_return_or_do() {
        for bad in [
            "Whether it is.",
            "The same for G2.",
            "What it has.",
            "Who waits.",
        ] {
            assert_eq!(
                rules(Kind::DocstringStart, bad),
                [Rule::DocstringStart],
                "{bad}"
            );
        }
        for good in ["Returns true if it is.", "The sums.", "Whole files."] {
            assert!(rules(Kind::DocstringStart, good).is_empty(), "{good}");
        }
    }

    #[test]
    fn a_clause_is_no_subject() {
        for bad in [
            "It is. What is left goes.",
            "Whoever asks waits.",
            "who asks waits",
        ] {
            assert_eq!(rules(Kind::Comment, bad), [Rule::ClauseSubject], "{bad}");
        }
        for good in ["What is a job?", "It is what is left.", "what", "What ran"] {
            assert!(rules(Kind::Comment, good).is_empty(), "{good}");
        }
    }

    #[test]
    fn a_sentence_has_at_most_25_words() {
        let sentence = |words: usize| format!("It{}.", " `a b c` – is".repeat(words / 2));
        assert!(rules(Kind::Document, &sentence(24)).is_empty());
        assert_eq!(rules(Kind::Document, &sentence(26)), [Rule::LongSentence]);
        assert!(rules(Kind::Comment, &sentence(26)).is_empty());
    }

    #[test]
    fn replaced_names_are_found_as_whole_words() {
        assert_eq!(rules(Kind::Comment, "Rings the [`Bell`]."), [Rule::OldName]);
        assert_eq!(rules(Kind::Document, "The sum\nin G2."), [Rule::OldName]);
        assert!(rules(Kind::Document, "See `engine/upkeep.rs`.").is_empty());
        assert!(rules(Kind::Comment, "A bookcase, a sum_in_g1.").is_empty());
    }
}
