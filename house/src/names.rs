//! Paths of the source, followed to their definitions.

use std::collections::BTreeSet;

use syn::{Item, ItemUse, Type, UseTree};

use crate::conditions::Conditions;
use crate::modules::{Crate, Head, ModuleId};

/// Something that a path names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A module of the crate.
    Module(ModuleId),
    /// An item of the crate: its module and its position there.
    Item(ModuleId, usize),
    /// A path into another crate.
    Outside(String),
}

/// One name that a `use` brings into a module, or a glob.
#[derive(Clone, Debug)]
pub struct Import {
    /// The path that is imported.
    pub path: Vec<String>,
    /// The name in the module; none for a glob.
    pub name: Option<String>,
    /// The path begins with `::`, so that it names another crate.
    pub is_rooted: bool,
}

impl Import {
    /// Returns the imports of a `use`.
    #[must_use]
    pub fn all(item: &ItemUse) -> Vec<Self> {
        let mut imports = Vec::new();
        let is_rooted = item.leading_colon.is_some();
        collect(&item.tree, &[], is_rooted, &mut imports);
        imports
    }
}

fn collect(tree: &UseTree, before: &[String], is_rooted: bool, imports: &mut Vec<Import>) {
    let with = |name: &str| {
        let mut path = before.to_vec();
        // `a::{self}` imports `a`; a leading `self` stays.
        if name != "self" || path.is_empty() {
            path.push(name.to_owned());
        }
        path
    };
    let mut add = |path: Vec<String>, name: Option<String>| {
        imports.push(Import {
            path,
            name,
            is_rooted,
        });
    };
    match tree {
        UseTree::Path(tree) => {
            collect(
                &tree.tree,
                &with(&tree.ident.to_string()),
                is_rooted,
                imports,
            );
        }
        UseTree::Name(tree) => {
            let path = with(&tree.ident.to_string());
            let name = path.last().cloned();
            add(path, name);
        }
        UseTree::Rename(tree) => {
            let path = with(&tree.ident.to_string());
            add(path, Some(tree.rename.to_string()));
        }
        UseTree::Glob(_) => add(before.to_vec(), None),
        UseTree::Group(tree) => {
            for tree in &tree.items {
                collect(tree, before, is_rooted, imports);
            }
        }
    }
}

/// Follows paths through the modules of one crate.
#[derive(Clone, Copy)]
pub struct Names<'c> {
    modules: &'c Crate,
}

/// Lookups under way, so that imports in a circle end.
type Path = Vec<(ModuleId, String)>;

impl<'c> Names<'c> {
    /// Returns the names of a crate.
    #[must_use]
    pub fn new(modules: &'c Crate) -> Self {
        Self { modules }
    }

    /// Returns all that the import names. A name can stand for a module and a function.
    #[must_use]
    pub fn import(&self, module: ModuleId, import: &Import) -> BTreeSet<Target> {
        self.follow_import(module, import, &mut Path::new())
    }

    /// Returns the item that a type is, if the crate defines it. References and
    /// parentheses do not count.
    #[must_use]
    pub fn item_of_type(&self, module: ModuleId, ty: &Type) -> Option<Target> {
        match ty {
            Type::Path(ty) if ty.qself.is_none() => self.item_of_path(module, &ty.path),
            Type::Reference(ty) => self.item_of_type(module, &ty.elem),
            Type::Paren(ty) => self.item_of_type(module, &ty.elem),
            Type::Group(ty) => self.item_of_type(module, &ty.elem),
            _ => None,
        }
    }

    /// Returns the type or trait that a path names, if the crate defines it. An alias
    /// of a type of the crate stands for that type.
    #[must_use]
    pub fn item_of_path(&self, module: ModuleId, path: &syn::Path) -> Option<Target> {
        let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        let targets = self.follow(
            module,
            &segments,
            path.leading_colon.is_some(),
            &mut Path::new(),
        );
        targets.into_iter().find_map(|target| {
            let Target::Item(owner, position) = target else {
                return None;
            };
            match &self.modules.modules[owner].items[position] {
                Item::Struct(_) | Item::Enum(_) | Item::Union(_) | Item::Trait(_) => Some(target),
                Item::Type(alias) => self.item_of_type(owner, &alias.ty),
                _ => None,
            }
        })
    }

    fn follow_import(
        &self,
        module: ModuleId,
        import: &Import,
        path: &mut Path,
    ) -> BTreeSet<Target> {
        self.follow(module, &import.path, import.is_rooted, path)
    }

    fn follow(
        &self,
        module: ModuleId,
        segments: &[String],
        is_rooted: bool,
        path: &mut Path,
    ) -> BTreeSet<Target> {
        let outside = || BTreeSet::from([Target::Outside(segments.join("::"))]);
        let Some((first, mut rest)) = segments.split_first() else {
            return BTreeSet::from([Target::Module(module)]);
        };
        if is_rooted {
            return outside();
        }
        let mut targets = match first.as_str() {
            "crate" => BTreeSet::from([Target::Module(0)]),
            "self" => BTreeSet::from([Target::Module(module)]),
            "super" => {
                let mut above = self.modules.modules[module].parent;
                while let Some((_, after)) = rest.split_first().filter(|(s, _)| *s == "super") {
                    above = self.modules.modules[above].parent;
                    rest = after;
                }
                BTreeSet::from([Target::Module(above)])
            }
            name => self.look_up(module, name, path),
        };
        if targets.is_empty() {
            return outside();
        }
        for segment in rest {
            targets = targets
                .into_iter()
                .flat_map(|target| self.step(target, segment, path))
                .collect();
        }
        targets
    }

    fn step(&self, target: Target, segment: &str, path: &mut Path) -> BTreeSet<Target> {
        match target {
            Target::Module(module) => self.look_up(module, segment, path),
            // A variant or an associated item has no definition of its own.
            Target::Item(..) => BTreeSet::new(),
            Target::Outside(before) => {
                BTreeSet::from([Target::Outside(format!("{before}::{segment}"))])
            }
        }
    }

    /// Returns all that a name stands for in a module.
    fn look_up(&self, module: ModuleId, name: &str, path: &mut Path) -> BTreeSet<Target> {
        let step = (module, name.to_owned());
        // `pub use stage::stage` names the module first: only an own item can be meant.
        if path.contains(&step) {
            return self.own(module, name);
        }
        path.push(step);
        let mut found = self.own(module, name);
        let mut globs = Vec::new();
        for item in &self.modules.modules[module].items {
            let Item::Use(item) = item else { continue };
            if Conditions::default().and(&item.attrs).needs_test() {
                continue;
            }
            for import in Import::all(item) {
                match &import.name {
                    Some(imported) if imported == name => {
                        found.extend(self.follow_import(module, &import, path));
                    }
                    Some(_) => {}
                    None => globs.push(import),
                }
            }
        }
        // A name of the module's own hides one from a glob.
        if found.is_empty() {
            for glob in &globs {
                for target in self.follow_import(module, glob, path) {
                    // The names of other crates are unknown here.
                    if let Target::Module(inner) = target {
                        found.extend(self.look_up(inner, name, path));
                    }
                }
            }
        }
        path.pop();
        found
    }

    /// Returns the items of a module that have this name.
    fn own(&self, module: ModuleId, name: &str) -> BTreeSet<Target> {
        let module_of = &self.modules.modules[module];
        let named = |(_, item): &(usize, &Item)| Head::of(item).is_some_and(|h| h.name == name);
        module_of
            .items
            .iter()
            .enumerate()
            .filter(named)
            .map(|(position, _)| match module_of.children.get(&position) {
                Some(child) => Target::Module(*child),
                None => Target::Item(module, position),
            })
            .collect()
    }
}
