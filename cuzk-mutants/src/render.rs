//! A source with its mutants in it, each behind its number.
//!
//! The code between the sites keeps its bytes, and a line keeps its number. Each operand stands in the
//! text once, except a place that is changed. So the text does not multiply where sites lie within
//! others.

use std::cmp::Reverse;
use std::ops::Range;

use crate::operators::Use;
use crate::sites::{Shape, Site};

/// A source with mutants.
#[derive(Clone, Debug, Default)]
pub struct Rendered {
    /// The text.
    pub text: String,
    /// The bytes of the code of each mutant.
    alternatives: Vec<(Range<usize>, u32)>,
    /// The bytes of each site, and its mutants.
    wholes: Vec<(Range<usize>, Vec<u32>)>,
    /// The bytes of each function, and its mutants.
    functions: Vec<(Range<usize>, Vec<u32>)>,
}

impl Rendered {
    /// Returns the mutants that an error of the compiler at these bytes forbids. That is the mutant
    /// whose code it is. If it is no mutant's, those of the innermost site around it are returned, then
    /// those of the line, and then those of the function.
    #[must_use]
    pub fn at(&self, error: &Range<usize>) -> Vec<u32> {
        let around = |range: &Range<usize>| range.start <= error.start && error.end <= range.end;
        let innermost = |list: &[(Range<usize>, Vec<u32>)]| {
            let list = list
                .iter()
                .filter(|(range, all)| around(range) && !all.is_empty());
            let least = list.min_by_key(|(range, _)| range.len());
            least
                .map(|(_, numbers)| numbers.clone())
                .unwrap_or_default()
        };
        let exact = self.alternatives.iter().filter(|(range, _)| around(range));
        let before = self.text.get(..error.start).unwrap_or_default();
        let line = before.matches('\n').count();
        let is_same = |range: &Range<usize>| {
            let before = self.text.get(..range.start).unwrap_or_default();
            before.matches('\n').count() == line
        };
        let of_line = || self.wholes.iter().filter(|(range, _)| is_same(range));
        let ways: [&dyn Fn() -> Vec<u32>; 4] = [
            &|| exact.clone().map(|(_, number)| *number).collect(),
            &|| innermost(&self.wholes),
            &|| {
                of_line()
                    .flat_map(|(_, numbers)| numbers)
                    .copied()
                    .collect()
            },
            &|| innermost(&self.functions),
        ];
        let mut found = ways.into_iter().map(|way| way());
        found
            .find(|numbers| !numbers.is_empty())
            .unwrap_or_default()
    }
}

/// A piece of text that takes the place of some bytes.
struct Edit {
    bytes: Range<usize>,
    /// It ends its site. Of several at one byte, the inner site's comes first.
    is_end: bool,
    site: usize,
    pieces: Vec<(String, Option<u32>)>,
}

/// Writes a source with the mutants that have numbers. `numbers` has one for each change of each site.
#[must_use]
pub fn render(text: &str, sites: &[Site], numbers: &[Vec<Option<u32>>]) -> Rendered {
    let mut edits = Vec::new();
    for (at, (site, numbers)) in sites.iter().zip(numbers).enumerate() {
        let chosen = site.changes.iter().zip(numbers);
        let chosen: Vec<_> = chosen
            .filter_map(|((_, code), number)| Some((code.as_str(), (*number)?)))
            .collect();
        if !chosen.is_empty() {
            for (bytes, is_end, pieces) in parts(text, &site.shape, &chosen) {
                edits.push(Edit {
                    bytes,
                    is_end,
                    site: at,
                    pieces,
                });
            }
        }
    }
    edits.sort_by_key(|edit| {
        let nested = if edit.is_end {
            Reverse(edit.site)
        } else {
            Reverse(0)
        };
        (edit.bytes.start, !edit.is_end, nested, edit.site)
    });
    apply(text, sites, numbers, &edits)
}

fn apply(text: &str, sites: &[Site], numbers: &[Vec<Option<u32>>], edits: &[Edit]) -> Rendered {
    let mut rendered = Rendered::default();
    let mut wholes = vec![None; sites.len()];
    // Where each byte of the source that begins an edit has come to lie.
    let mut moved = vec![(0, 0)];
    let mut from = 0;
    for edit in edits {
        rendered.text += text.get(from..edit.bytes.start).unwrap_or_default();
        moved.push((edit.bytes.start, rendered.text.len()));
        let begin = rendered.text.len();
        for (piece, number) in &edit.pieces {
            let start = rendered.text.len();
            rendered.text += piece;
            if let Some(number) = number {
                rendered
                    .alternatives
                    .push((start..rendered.text.len(), *number));
            }
        }
        from = edit.bytes.end;
        moved.push((from, rendered.text.len()));
        if let Some(whole) = wholes.get_mut(edit.site) {
            let Range { start, .. } = whole.clone().unwrap_or(begin..begin);
            *whole = Some(start..rendered.text.len());
        }
    }
    rendered.text += text.get(from..).unwrap_or_default();
    let place = |byte: usize| {
        let before = moved.iter().rev().find(|(source, _)| *source <= byte);
        before.map_or(byte, |(source, to)| to + byte - source)
    };
    for ((site, numbers), whole) in sites.iter().zip(numbers).zip(wholes) {
        let numbers: Vec<_> = numbers.iter().flatten().copied().collect();
        if let Some(whole) = whole {
            rendered.wholes.push((whole, numbers.clone()));
        }
        let function = place(site.function.start)..place(site.function.end);
        match rendered
            .functions
            .iter_mut()
            .find(|(range, _)| *range == function)
        {
            Some((_, all)) => all.extend(numbers),
            None => rendered.functions.push((function, numbers)),
        }
    }
    rendered
}

fn is(number: u32) -> String {
    format!("crate::__mutants::is({number})")
}

type Pieces = Vec<(String, Option<u32>)>;

/// Returns `if is(7) { CODE } else if … else { CODE }`, with the code of each mutant, and the own one.
fn choice(chosen: &[(&str, u32)], code: impl Fn(&str) -> String, own: &str) -> Pieces {
    let mut pieces = Vec::new();
    for (change, number) in chosen {
        pieces.push((format!("if {} {{ ", is(*number)), None));
        pieces.push((code(change), Some(*number)));
        pieces.push((" } else ".to_owned(), None));
    }
    pieces.push((format!("{{ {} }}", code(own)), None));
    pieces
}

fn plain(text: impl Into<String>) -> Pieces {
    vec![(text.into(), None)]
}

/// A text for the mutants of one site: where, whether it ends the site, and what.
type Part = (Range<usize>, bool, Pieces);

fn parts(text: &str, shape: &Shape, chosen: &[(&str, u32)]) -> Vec<Part> {
    let first = is(chosen.first().map_or(0, |(_, number)| *number));
    let around = |bytes: &Range<usize>, before: String, after: &str| {
        let (start, end) = (bytes.start..bytes.start, bytes.end..bytes.end);
        vec![(start, false, plain(before)), (end, true, plain(after))]
    };
    match shape {
        Shape::Body(at) => vec![(*at..*at, false, early_returns(chosen))],
        Shape::Operator {
            of,
            left,
            token,
            right,
        } => operator(text, *of, [left, token, right], chosen),
        Shape::Unary { token, end } => {
            let own = text.get(token.clone()).unwrap_or_default();
            let arms = choice(chosen, |op| format!("{op}l"), own);
            let start = (token.clone(), false, plain("(match ("));
            vec![start, (*end..*end, true, matched(") { l => ", arms))]
        }
        Shape::Guard(guard) => around(guard, format!("({}(", condition(chosen)), "))"),
        Shape::Arm(Ok(guard)) => around(guard, format!("(!{first} && ("), "))"),
        Shape::Arm(Err(at)) => vec![(*at..*at, false, plain(format!(" if !{first}")))],
    }
}

/// `bytes` are those of the first operand, of the operator and of the second operand.
fn operator(text: &str, of: Use, bytes: [&Range<usize>; 3], chosen: &[(&str, u32)]) -> Vec<Part> {
    let [left, token, right] = bytes.map(Range::clone);
    let own = text.get(token.clone()).unwrap_or_default();
    let start = left.start..left.start;
    let end = right.end..right.end;
    let (before, between, arms) = match of {
        Use::Lazy => return lazy(own, [start, token, end], chosen),
        Use::Assigned => {
            let place = text.get(left.clone()).unwrap_or_default();
            let place = place.split_whitespace().collect::<Vec<_>>().join(" ");
            let arms = choice(chosen, |op| format!("{place} {op} r"), own);
            let start = left.start..right.start;
            // As many lines as before.
            let ends = text
                .get(start.clone())
                .unwrap_or_default()
                .matches('\n')
                .count();
            let before = plain("(match (".to_owned() + &"\n".repeat(ends));
            return vec![
                (start, false, before),
                (end, true, matched(") { r => ", arms)),
            ];
        }
        Use::Compared => (
            "(match (&(",
            "), &(",
            choice(chosen, |op| format!("*l {op} *r"), own),
        ),
        Use::Taken => (
            "(match ((",
            "), (",
            choice(chosen, |op| format!("l {op} r"), own),
        ),
    };
    vec![
        (start, false, plain(before)),
        (token, false, plain(between)),
        (end, true, matched(")) { (l, r) => ", arms)),
    ]
}

/// The second operand stands in the text once: `a && b` is `if a != is(7) { b } else { is(7) }`.
fn lazy(own: &str, bytes: [Range<usize>; 3], chosen: &[(&str, u32)]) -> Vec<Part> {
    let [start, token, end] = bytes;
    let number = chosen.first().map_or(0, |(_, number)| *number);
    let (relation, not) = if own == "&&" { ("!=", "") } else { ("==", "!") };
    let is = is(number);
    let last = vec![
        ("} else { ".to_owned(), None),
        (format!("{not}{is}"), Some(number)),
        (" })".to_owned(), None),
    ];
    let between = plain(format!(") {relation} {is} {{"));
    vec![
        (start, false, plain("(if (")),
        (token, false, between),
        (end, true, last),
    ]
}

/// Returns what stands before the condition of a match arm.
fn condition(chosen: &[(&str, u32)]) -> String {
    let part = |(to, number): &(&str, u32)| match *to {
        "true" => format!("{} || ", is(*number)),
        _ => format!("!{} && ", is(*number)),
    };
    chosen.iter().map(part).collect()
}

fn matched(before: &str, arms: Pieces) -> Pieces {
    let mut pieces = plain(before);
    pieces.extend(arms);
    pieces.extend(plain(" })"));
    pieces
}

fn early_returns(chosen: &[(&str, u32)]) -> Pieces {
    let mut pieces = Vec::new();
    for (value, number) in chosen {
        pieces.push((format!(" if {} {{ ", is(*number)), None));
        pieces.push((format!("return {value};"), Some(*number)));
        pieces.push((" }".to_owned(), None));
    }
    pieces
}
