//! Imports point down: from crate to crate, and from module to module.
//!
//! The sources say which imports there are; those of tests do not count. `table` has the
//! order that the imports must keep, and the remaining circles with their reasons.
//!
//! The modules of a crate are a tree. The children of each module must not import each
//! other in a circle, where a child counts with all modules below it. A module and those
//! below it are one noun, and may import each other.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

mod table;

use std::collections::{BTreeMap, BTreeSet};

use house::imports::Imports;
use house::modules::Crate;
use house::workspace::{members, top};

use table::{CIRCLES, Circle, LAYERS, ORDERS};

/// A module: its crate's name, then the names on the way to it.
type Module = Vec<String>;

/// The rules that the sources of a workspace keep.
struct Rules<'a> {
    /// Crates, from the bottom up. Those of one layer do not import each other.
    layers: &'a [&'a [&'a str]],
    /// The children of modules, from the bottom up.
    orders: &'a [(&'a str, &'a [&'a str])],
    circles: &'a [Circle],
}

/// The imports of a workspace by module, tests apart.
#[derive(Default)]
struct Workspace(BTreeMap<Module, Imports>);

impl Workspace {
    /// Adds the modules of a crate.
    fn add_crate(&mut self, modules: &Crate) {
        let needed = modules
            .modules
            .iter()
            .filter(|m| !m.conditions.needs_test());
        for module in needed {
            let below = module.path.split("::").filter(|name| !name.is_empty());
            let names = [modules.name.as_str()].into_iter().chain(below);
            let imports = Imports::of(&module.items);
            self.0.insert(names.map(str::to_owned).collect(), imports);
        }
    }

    /// Adds a made-up module.
    fn add(&mut self, module: Module, text: &str) {
        let file = syn::parse_file(text).unwrap();
        self.0.insert(module, Imports::of(&file.items));
    }

    /// Returns the module that `path` leads to from `from`, through all imports on its way.
    /// None if the path leads out of this workspace.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => vec![from[0].clone()],
            "self" => from.clone(),
            "super" => {
                let mut above = from.clone();
                above.pop();
                while let Some((next, after)) = rest.split_first()
                    && next == "super"
                {
                    above.pop();
                    rest = after;
                }
                above
            }
            name if self.0.contains_key(&vec![name.to_owned()]) => vec![name.to_owned()],
            _ => {
                let here = self.step(from, first, depth)?;
                return self.walk(here, rest, depth);
            }
        };
        at.truncate(at.len().max(1));
        self.0
            .contains_key(&at)
            .then(|| self.walk(at, rest, depth))?
    }

    /// Returns the module that `rest` leads to from `at`: the last one on the way.
    fn walk(&self, mut at: Module, rest: &[String], depth: usize) -> Option<Module> {
        for name in rest {
            let Some(next) = self.step(&at, name, depth) else {
                break;
            };
            at = next;
        }
        Some(at)
    }

    /// Returns the module that `name` is in `at`, or that it is imported from.
    fn step(&self, at: &Module, name: &str, depth: usize) -> Option<Module> {
        let mut child = at.clone();
        child.push(name.to_owned());
        if self.0.contains_key(&child) {
            return Some(child);
        }
        let imports = &self.0.get(at)?.imports;
        let (_, path) = imports.iter().find(|(imported, _)| imported == name)?;
        // An import of the name itself, `use name::...`, leads to no end.
        let deeper = depth.checked_sub(1)?;
        self.resolve(at, path, deeper)
    }

    /// Returns each module with the modules that it imports from.
    fn arrows(&self) -> BTreeSet<(Module, Module)> {
        const DEPTH: usize = 8;
        let mut arrows = BTreeSet::new();
        for (module, source) in &self.0 {
            let imports = source.imports.iter().map(|(_, path)| path);
            for path in imports.chain(&source.paths) {
                if let Some(target) = self.resolve(module, path, DEPTH) {
                    arrows.insert((module.clone(), target));
                }
            }
        }
        arrows
    }

    fn problems(&self, rules: &Rules<'_>) -> Vec<String> {
        let arrows = self.arrows();
        let mut problems = self.between_crates(rules, &arrows);
        let mut unseen: Vec<_> = rules.circles.iter().collect();
        for parent in self.0.keys() {
            let inside = inside(parent, &arrows);
            let order = rules.orders.iter().find(|(of, _)| **of == name(parent));
            if let Some((_, order)) = order {
                problems.extend(self.out_of_order(parent, order, &inside));
            }
            for circle in circles(&inside) {
                let is_it = |known: &&Circle| {
                    known.of == name(parent) && circle.iter().eq(known.modules.iter())
                };
                match unseen.iter().position(is_it) {
                    Some(at) => drop(unseen.remove(at)),
                    None => problems.push(format!("{}: a circle of {circle:?}", name(parent))),
                }
            }
        }
        let gone = |circle: &&Circle| format!("{}: {:?} is no circle", circle.of, circle.modules);
        problems.extend(unseen.iter().map(gone));
        problems
    }

    fn between_crates(
        &self,
        rules: &Rules<'_>,
        arrows: &BTreeSet<(Module, Module)>,
    ) -> Vec<String> {
        let layer_of = |name: &str| {
            let mut layers = rules.layers.iter();
            layers.position(|layer| layer.iter().any(|of| of.replace('-', "_") == name))
        };
        let crates: BTreeSet<_> = self.0.keys().map(|module| &module[0]).collect();
        let unlisted = crates.iter().filter(|name| layer_of(name).is_none());
        let unlisted = unlisted.map(|name| format!("{name} is in no layer of the table"));
        let upward = arrows
            .iter()
            .filter(|(from, to)| from[0] != to[0] && layer_of(&from[0]) <= layer_of(&to[0]));
        let upward = upward.map(|(from, to)| format!("{} imports {}", name(from), name(to)));
        unlisted.chain(upward).collect()
    }

    fn out_of_order(
        &self,
        parent: &Module,
        order: &[&str],
        inside: &BTreeSet<(String, String)>,
    ) -> Vec<String> {
        let place_of = |child: &str| order.iter().position(|of| *of == child);
        let children = self
            .0
            .keys()
            .filter(|module| module.len() == parent.len() + 1 && module.starts_with(parent));
        let unlisted = children.filter_map(|child| child.last());
        let unlisted = unlisted.filter(|child| place_of(child).is_none());
        let unlisted = unlisted.map(|child| format!("{}: {child} has no place", name(parent)));
        let upward = inside
            .iter()
            .filter(|(from, to)| place_of(from) < place_of(to));
        let upward = upward.map(|(from, to)| format!("{}: {from} imports {to}", name(parent)));
        unlisted.chain(upward).collect()
    }
}

fn name(module: &Module) -> String {
    module.join("::")
}

/// Returns the imports between the children of `parent`, each with all modules below it.
fn inside(parent: &Module, arrows: &BTreeSet<(Module, Module)>) -> BTreeSet<(String, String)> {
    let child = |module: &Module| {
        let is_below = module.len() > parent.len() && module.starts_with(parent);
        is_below.then(|| module[parent.len()].clone())
    };
    let inside = arrows.iter();
    let inside = inside.filter_map(|(from, to)| Some((child(from)?, child(to)?)));
    inside.filter(|(from, to)| from != to).collect()
}

/// Returns the circles of a graph: the sets of nodes that reach each other.
fn circles(arrows: &BTreeSet<(String, String)>) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let mut reached = BTreeSet::new();
        let mut next = vec![from.clone()];
        while let Some(at) = next.pop() {
            for (_, to) in arrows.iter().filter(|(from, _)| *from == at) {
                if reached.insert(to.clone()) {
                    next.push(to.clone());
                }
            }
        }
        reached
    };
    let names: BTreeSet<_> = arrows.iter().map(|(from, _)| from).collect();
    let all: BTreeMap<_, _> = names.iter().map(|name| (*name, reached(name))).collect();
    let circle_of = |name: &String| -> BTreeSet<String> {
        let ours = all.get(name).into_iter().flatten();
        let back = ours.filter(|to| all.get(to).is_some_and(|theirs| theirs.contains(name)));
        back.cloned().collect()
    };
    let circles: BTreeSet<_> = names.iter().map(|name| circle_of(name)).collect();
    circles
        .into_iter()
        .filter(|circle| circle.len() > 1)
        .collect()
}

#[test]
fn imports_point_down() {
    let top = top();
    let mut workspace = Workspace::default();
    for member in members(&top).unwrap() {
        for root in member.roots(&top) {
            let modules = Crate::read(&member.name, &root, &top).unwrap();
            workspace.add_crate(&modules);
        }
    }
    assert!(workspace.0.len() > 200, "{}", workspace.0.len());
    assert!(workspace.arrows().len() > 500);
    let rules = Rules {
        layers: LAYERS,
        orders: ORDERS,
        circles: CIRCLES,
    };
    let problems = workspace.problems(&rules);
    assert!(problems.is_empty(), "{problems:#?}");
}

/// A workspace of two crates, of which `changed` replaces or adds modules.
fn made_up(changed: &[(&str, &str)]) -> Vec<String> {
    let mut workspace = Workspace::default();
    let sources = [
        ("low", "mod ground; mod top; pub use top::Top;"),
        ("low::ground", "pub struct Ground;"),
        (
            "low::top",
            "use crate::ground::Ground; pub struct Top(Ground);",
        ),
        ("high", "mod user; mod other;"),
        (
            "high::user",
            "use low::{Top as T, self}; fn f() { crate::other::g() }",
        ),
        ("high::other", "pub fn g() {}"),
    ];
    for (module, text) in sources.iter().chain(changed) {
        let module = module.split("::").map(str::to_owned).collect();
        workspace.add(module, text);
    }
    let circle = Circle {
        of: "high",
        modules: &["known", "too"],
        reason: "made up",
    };
    let has_known = workspace
        .0
        .contains_key(&vec!["high".to_owned(), "known".to_owned()]);
    workspace.problems(&Rules {
        layers: &[&["low"], &["high"]],
        orders: &[("low", &["ground", "top"])],
        circles: if has_known {
            std::slice::from_ref(&circle)
        } else {
            &[]
        },
    })
}

#[test]
fn the_check_can_fail() {
    let fails = |changed: &[(&str, &str)], expected: &str| {
        assert_eq!(made_up(changed), [expected], "{changed:?}");
    };
    assert!(made_up(&[]).is_empty());
    let up = "fn f() -> high::user::User { todo!() }";
    fails(&[("low::ground", up)], "low::ground imports high::user");
    // Through a name that another module imports.
    let renamed = "use crate::{self as here}; pub use here::top::Top;";
    fails(
        &[("low::ground", "use super::top::Top;"), ("low::top", "")],
        "low: ground imports top",
    );
    fails(
        &[("low::ground", "use crate::Top;"), ("low::top", "")],
        "low: ground imports top",
    );
    fails(
        &[("low::ground", renamed), ("low::top", "")],
        "low: ground imports top",
    );
    fails(&[("low::new", "")], "low: new has no place");
    fails(&[("third", "")], "third is in no layer of the table");
    let circle = "high: a circle of {\"other\", \"user\"}";
    fails(
        &[("high::other", "use super::user::f; pub fn g() {}")],
        circle,
    );
    // Each child counts with all that is below it.
    let below = [("high::other::below", "use super::super::user::f;")];
    fails(&below, circle);
}

#[test]
fn what_is_no_import_is_not_taken_for_one() {
    for text in [
        "// use crate::top::Top;",
        "/* use crate::top::Top; /* */ use super::top::Top; */",
        "/// [`crate::top::Top`]\npub struct Ground;",
        "const TEXT: &str = \"crate::top::Top\";",
        "const TEXT: &str = r#\"\" crate::top::Top\"#;",
        "#[cfg(test)]\nmod tests { use super::super::top::Top; }\n#[cfg(test)]\nuse crate::top::Top;",
        "fn quotes<'a>(_: &'a str) -> [char; 2] { ['\"', '\\''] }",
    ] {
        let problems = made_up(&[("low::ground", text)]);
        assert!(problems.is_empty(), "{text}: {problems:?}");
    }
}

/// A circle that is known has a reason, and is there.
#[test]
fn known_circles_are_there() {
    assert!(CIRCLES.iter().all(|circle| circle.reason.len() > 20));
    let known = [
        ("high::known", "use super::too;"),
        ("high::too", "use super::known;"),
    ];
    assert!(made_up(&known).is_empty());
    let gone = [("high::known", "use super::too;"), ("high::too", "")];
    assert_eq!(made_up(&gone), ["high: [\"known\", \"too\"] is no circle"]);
}
