//! The check of tables that came from outside: references, totals and reach.

use super::{
    rows::{INPUT_BIT, Item, Shape},
    symbol::{NODE_BIT, REPEAT, Totals, totals_of},
    tables::{Tables, View},
};
use crate::tables_error::TablesError;

/// Deepest nesting of nodes. Every level of a grammar at most halves its
/// length and nests a repeat and a chunk, so 2^32 rows need 64.
const DEPTH_MAX: u8 = 66;

/// Checks the invariant of tables that came from outside: see [`super::tables`].
///
/// # Errors
/// The first violation, as a [`TablesError`].
pub(super) fn check_tables(
    tables: &Tables,
    num_coefficients: usize,
    num_inputs: u32,
    num_aux: u32,
    rows: u32,
) -> Result<(), TablesError> {
    let view = tables.view();
    let part_reach = part_reaches(&view, num_coefficients, num_inputs)?;
    let shape_reach = shape_reaches(&view, &part_reach)?;
    let reach = root_reach(&view, &shape_reach)?;
    let totals = view.grammar.totals(view.grammar.root);
    let fits = totals.is_some_and(|totals| totals.rows == rows && totals.aux <= num_aux);
    if fits && reach <= 0 {
        Ok(())
    } else {
        Err(TablesError::Dimensions { rows, num_aux })
    }
}

/// For each part, how far back its oldest auxiliary variable is, 0 for none.
fn part_reaches(
    view: &View<'_>,
    num_coefficients: usize,
    num_inputs: u32,
) -> Result<Vec<u32>, TablesError> {
    check_extents("part", view.part_ends, view.items.len())?;
    let mut reaches = Vec::with_capacity(view.part_ends.len());
    let parts = 0..view.part_ends.len();
    for (at, part) in parts.zip(0u32..) {
        let mut reach = 0;
        for &words in view.part(part) {
            let first = Item::decode(words).map(|item| item.as_run().first);
            let first = first.filter(|first| {
                let is_col = match first.col & INPUT_BIT {
                    0 => first.col > 0,
                    _ => first.col & !INPUT_BIT < num_inputs,
                };
                is_col && (first.coefficient as usize) < num_coefficients
            });
            let Some(first) = first else {
                let section = "part";
                return Err(TablesError::Reference { section, at });
            };
            if first.col & INPUT_BIT == 0 {
                reach = reach.max(first.col);
            }
        }
        reaches.push(reach);
    }
    Ok(reaches)
}

/// For each shape, how many auxiliary variables must come before its row's
/// advance; negative if it needs none.
fn shape_reaches(view: &View<'_>, part_reach: &[u32]) -> Result<Vec<i64>, TablesError> {
    let shapes = view.grammar.shapes.iter().enumerate();
    shapes
        .map(|(at, &words)| {
            let shape = Shape::decode(words);
            let mut reach = shape.boolean;
            for part in shape.parts {
                let section = "shape";
                let part = part_reach.get(part as usize);
                reach = reach.max(*part.ok_or(TablesError::Reference { section, at })?);
            }
            Ok(i64::from(reach) - i64::from(shape.advance))
        })
        .collect()
}

/// How many auxiliary variables must come before the first row.
fn root_reach(view: &View<'_>, shape_reach: &[i64]) -> Result<i64, TablesError> {
    let grammar = view.grammar;
    let ends: Vec<u32> = grammar.nodes.iter().map(|node| node[0]).collect();
    check_extents("node", &ends, grammar.children.len())?;
    // By node: how far it reaches back, and how deep it nests.
    let mut known: Vec<(i64, u8)> = Vec::with_capacity(grammar.nodes.len());
    for (at, node) in (0u32..).zip(grammar.nodes) {
        let broken = || TablesError::Node { at: at as usize };
        let words = grammar.words(at | NODE_BIT).ok_or_else(broken)?;
        let [_, rows, aux] = *node;
        let child = |symbol: u32| {
            // Nodes come after their children.
            let is_earlier = symbol & NODE_BIT == 0 || symbol & !NODE_BIT < at;
            grammar.totals(symbol).filter(|_| is_earlier)
        };
        let is_root = at | NODE_BIT == grammar.root;
        if totals_of(words, child) != Some(Totals { rows, aux }) || (rows == 0 && !is_root) {
            return Err(broken());
        }
        let reach_of = |symbol: u32| match symbol & NODE_BIT {
            0 => shape_reach
                .get((symbol >> 1) as usize)
                .map(|&reach| (reach, 0)),
            _ => known.get((symbol & !NODE_BIT) as usize).copied(),
        };
        let children = match words {
            &[REPEAT, ref symbol, _] => std::slice::from_ref(symbol),
            words => words,
        };
        let (mut before, mut reach, mut depth) = (0, i64::MIN, 0);
        for &symbol in children {
            let (child_reach, child_depth) = reach_of(symbol).ok_or_else(broken)?;
            reach = reach.max(child_reach - before);
            depth = depth.max(child_depth + 1);
            before += child(symbol).map_or(0, |totals| i64::from(totals.aux));
        }
        if depth > DEPTH_MAX {
            return Err(broken());
        }
        known.push((reach, depth));
    }
    match view.grammar.root & NODE_BIT {
        0 => shape_reach.get((grammar.root >> 1) as usize).copied(),
        _ => known
            .get((grammar.root & !NODE_BIT) as usize)
            .map(|known| known.0),
    }
    .ok_or(TablesError::Reference {
        section: "root",
        at: 0,
    })
}

/// Ends never decrease and the last is the length of what they divide.
fn check_extents(section: &'static str, ends: &[u32], length: usize) -> Result<(), TablesError> {
    if let Some(at) = ends.windows(2).position(|w| w[1] < w[0]) {
        return Err(TablesError::Extent {
            section,
            at: at + 1,
        });
    }
    match ends.last() {
        Some(&last) if last as usize != length => Err(TablesError::Extent {
            section,
            at: ends.len() - 1,
        }),
        None if length > 0 => Err(TablesError::Extent { section, at: 0 }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables::Counts;
    use super::*;
    use crate::bytes::Words;

    /// Tables of nodes, as the words of each with its rows, over one shape that reads
    /// nothing. The last node is the root.
    fn of_nodes(nodes: &[(&[u32], u32)]) -> Tables {
        let shape = Shape {
            parts: [0; 3],
            boolean: 0,
            advance: 0,
        };
        let mut words = vec![0]; // The part's end.
        words.extend(shape.encode());
        let mut end = 0;
        for (children, rows) in nodes {
            end += u32::try_from(children.len()).unwrap();
            words.extend([end, *rows, 0]);
        }
        words.extend(nodes.iter().flat_map(|(children, _)| *children));
        let counts = Counts {
            parts: 1,
            items: 0,
            shapes: 1,
            nodes: u32::try_from(nodes.len()).unwrap(),
            children: end,
            root: NODE_BIT | u32::try_from(nodes.len() - 1).unwrap(),
        };
        Tables::from_words(Words::from(words), counts).unwrap()
    }

    /// Two nested repeats of nothing would be walked for 2^64 steps.
    #[test]
    fn a_node_without_rows_is_refused_unless_it_is_the_root() {
        const ROW: u32 = 0;
        let node = |number: u32| NODE_BIT | number;
        let check = |nodes: &[(&[u32], u32)]| {
            let rows = nodes.last().unwrap().1;
            check_tables(&of_nodes(nodes), 0, 1, 0, rows)
        };
        assert_eq!(check(&[(&[], 0)]), Ok(()));
        assert_eq!(check(&[(&[ROW], 1), (&[node(0), node(0)], 2)]), Ok(()));
        let nested: &[(&[u32], u32)] = &[
            (&[], 0),
            (&[REPEAT, node(0), u32::MAX], 0),
            (&[REPEAT, node(1), u32::MAX], 0),
            (&[node(2), ROW], 1),
            (&[ROW, node(3)], 2),
        ];
        assert_eq!(check(nested), Err(TablesError::Node { at: 0 }));
        let none_of_some: &[(&[u32], u32)] = &[(&[REPEAT, ROW, 0], 0), (&[ROW, node(0)], 1)];
        assert_eq!(check(none_of_some), Err(TablesError::Node { at: 0 }));
    }
}
