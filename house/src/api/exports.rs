//! The items that can be reached from the root of a crate, with their paths.

use std::collections::BTreeMap;

use syn::{Item, ItemUse, Visibility};

use crate::conditions::Conditions;
use crate::modules::{Crate, Head, ModuleId, join};
use crate::names::{Import, Names, Target};

use super::is_hidden;

/// The path of a public item, and the conditions under which it is there.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) path: String,
    pub(super) conditions: Conditions,
}

/// All that a crate exports.
pub(super) struct Exports<'c> {
    modules: &'c Crate,
    names: Names<'c>,
    /// The modules and items, each with its path.
    pub(super) places: BTreeMap<Target, Place>,
    /// The lines of further paths, and of items of other crates.
    pub(super) aliases: Vec<String>,
    /// Modules whose imports are not yet followed.
    open: Vec<(ModuleId, Place)>,
}

impl<'c> Exports<'c> {
    /// Follows `pub mod` first and `pub use` afterwards, from the root downwards. An
    /// item therefore has the path of its definition, if that is public.
    pub(super) fn of(modules: &'c Crate, names: Names<'c>) -> Self {
        let mut exports = Self {
            modules,
            names,
            places: BTreeMap::new(),
            aliases: Vec::new(),
            open: Vec::new(),
        };
        let root = Place {
            path: modules.name.clone(),
            conditions: Conditions::default(),
        };
        exports.module(0, root);
        let mut next = 0;
        while let Some((module, place)) = exports.open.get(next).cloned() {
            exports.imports(module, &place, &mut Vec::new());
            next += 1;
        }
        exports
    }

    /// Adds a module, its public items and its public modules.
    fn module(&mut self, module: ModuleId, place: Place) {
        let target = Target::Module(module);
        if self.places.contains_key(&target) {
            return;
        }
        self.places.insert(target, place.clone());
        self.open.push((module, place.clone()));
        for (target, inner) in self.public_items(module, &place) {
            match target {
                Target::Module(child) => self.module(child, inner),
                target => {
                    self.places.entry(target).or_insert(inner);
                }
            }
        }
    }

    /// Returns the public items that a module defines, as they are at `place`.
    fn public_items(&self, module: ModuleId, place: &Place) -> Vec<(Target, Place)> {
        let module_of = &self.modules.modules[module];
        let mut items = Vec::new();
        for (position, item) in module_of.items.iter().enumerate() {
            let Some(head) = Head::of(item).filter(Head::is_public) else {
                continue;
            };
            let conditions = place.conditions.and(head.attributes);
            if conditions.needs_test() || is_hidden(head.attributes) {
                continue;
            }
            let target = match module_of.children.get(&position) {
                Some(child) => Target::Module(*child),
                None => Target::Item(module, position),
            };
            let path = join(&place.path, &head.name.to_string());
            items.push((target, Place { path, conditions }));
        }
        items
    }

    /// Adds what a module exports by `pub use`, as if it were at `place`.
    fn imports(&mut self, module: ModuleId, place: &Place, globs: &mut Vec<ModuleId>) {
        let modules = self.modules;
        for item in &modules.modules[module].items {
            let Item::Use(item) = item else { continue };
            let is_public = matches!(item.vis, Visibility::Public(_));
            let conditions = place.conditions.and(&item.attrs);
            if is_public && !conditions.needs_test() && !is_hidden(&item.attrs) {
                let path = place.path.clone();
                self.import(module, item, &Place { path, conditions }, globs);
            }
        }
    }

    fn import(
        &mut self,
        module: ModuleId,
        item: &ItemUse,
        place: &Place,
        globs: &mut Vec<ModuleId>,
    ) {
        for import in Import::all(item) {
            let targets = self.names.import(module, &import);
            let Some(name) = &import.name else {
                for target in targets {
                    self.glob(target, &import, place, globs);
                }
                continue;
            };
            let place = Place {
                path: join(&place.path, name),
                conditions: place.conditions.clone(),
            };
            let mut is_known = false;
            for target in targets {
                if !self.is_public(&target) {
                    continue;
                }
                is_known = true;
                self.export(target, place.clone());
            }
            // A variant, for example.
            if !is_known {
                self.alias(&place, &import.path.join("::"));
            }
        }
    }

    fn glob(&mut self, target: Target, import: &Import, place: &Place, globs: &mut Vec<ModuleId>) {
        match target {
            Target::Module(inner) if !globs.contains(&inner) => {
                globs.push(inner);
                for (target, place) in self.public_items(inner, place) {
                    self.export(target, place);
                }
                self.imports(inner, place, globs);
                globs.pop();
            }
            // A function can have the module's name. Only an enum has names in it.
            Target::Item(module, position)
                if !matches!(self.modules.modules[module].items[position], Item::Enum(_)) => {}
            Target::Module(_) => {}
            Target::Item(..) | Target::Outside(_) => {
                let place = Place {
                    path: join(&place.path, "*"),
                    conditions: place.conditions.clone(),
                };
                self.alias(&place, &format!("{}::*", import.path.join("::")));
            }
        }
    }

    /// Adds a target at a path: with its content, or as an alias of its first path.
    fn export(&mut self, target: Target, place: Place) {
        if let Target::Outside(path) = &target {
            self.alias(&place, path);
            return;
        }
        if let Some(known) = self.places.get(&target) {
            let path = known.path.clone();
            if path != place.path {
                self.alias(&place, &path);
            }
            return;
        }
        let conditions = place.conditions.union(&self.conditions_of(&target));
        let place = Place {
            conditions,
            ..place
        };
        match target {
            Target::Module(module) => self.module(module, place),
            target => {
                self.places.insert(target, place);
            }
        }
    }

    fn alias(&mut self, place: &Place, path: &str) {
        let Place {
            path: alias,
            conditions,
        } = place;
        self.aliases
            .push(format!("{alias}: {conditions}pub use {path}"));
    }

    /// Returns the conditions of a definition, those of its modules included.
    fn conditions_of(&self, target: &Target) -> Conditions {
        match target {
            Target::Module(module) => self.modules.modules[*module].conditions.clone(),
            Target::Item(module, position) => {
                let module = &self.modules.modules[*module];
                let head = Head::of(&module.items[*position]);
                module.conditions.and(head.map_or(&[], |h| h.attributes))
            }
            Target::Outside(_) => Conditions::default(),
        }
    }

    /// Returns true if a definition is `pub`: a `pub use` exports no other.
    fn is_public(&self, target: &Target) -> bool {
        match target {
            Target::Module(0) | Target::Outside(_) => true,
            Target::Module(module) => {
                let parent = &self.modules.modules[self.modules.modules[*module].parent];
                let mut children = parent.children.iter();
                children
                    .find(|(_, child)| *child == module)
                    .and_then(|(position, _)| Head::of(&parent.items[*position]))
                    .is_some_and(|head| head.is_public())
            }
            Target::Item(module, position) => {
                let item = &self.modules.modules[*module].items[*position];
                Head::of(item).is_some_and(|head| head.is_public())
            }
        }
    }
}
