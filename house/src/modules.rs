//! The modules of a crate, with their items.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use syn::{Attribute, Expr, ExprLit, Ident, Item, ItemMod, Lit, Meta, Visibility};

use crate::conditions::Conditions;
use crate::sources::Sources;
use crate::{Error, Result};

/// Position of a module in [`Crate::modules`].
pub type ModuleId = usize;

/// A crate: its root is module 0.
pub struct Crate {
    /// Its name as paths have it, with underscores.
    pub name: String,
    /// All its modules, each after its parent.
    pub modules: Vec<Module>,
}

/// A module, in a file of its own or in that of its parent.
pub struct Module {
    /// The module that it is in; the root is its own parent.
    pub parent: ModuleId,
    /// Its path from the root, without the crate's name: `msm::window`.
    pub path: String,
    /// The file that it is in, relative to the top of the workspace.
    pub file: PathBuf,
    /// The conditions under which it exists.
    pub conditions: Conditions,
    /// Its items, in the order of the source.
    pub items: Vec<Item>,
    /// The modules in it, by the positions of their items.
    pub children: BTreeMap<usize, ModuleId>,
    /// The folder of the files of its children.
    folder: PathBuf,
}

impl Crate {
    /// Reads the crate whose root is the file `root`.
    ///
    /// # Errors
    /// A file of the crate is missing or does not parse.
    pub fn read(package: &str, root: &Path, sources: &dyn Sources) -> Result<Self> {
        let folder = root.parent().unwrap_or(Path::new("")).to_owned();
        let items = parse(root, sources)?;
        let top = Module {
            parent: 0,
            path: String::new(),
            file: root.to_owned(),
            conditions: Conditions::default(),
            items,
            children: BTreeMap::new(),
            folder,
        };
        let mut modules = vec![top];
        let mut next = 0;
        while next < modules.len() {
            for (position, mut child) in children(next, &modules[next], sources)? {
                child.parent = next;
                let id = modules.len();
                modules.push(child);
                modules[next].children.insert(position, id);
            }
            next += 1;
        }
        let name = package.replace('-', "_");
        Ok(Self { name, modules })
    }
}

/// Returns the modules in a module, each with the position of its item.
fn children(
    parent: ModuleId,
    module: &Module,
    sources: &dyn Sources,
) -> Result<Vec<(usize, Module)>> {
    let mut children = Vec::new();
    for (position, item) in module.items.iter().enumerate() {
        let Item::Mod(item) = item else { continue };
        let name = item.ident.to_string();
        let (file, folder, items) = match &item.content {
            Some((_, items)) => {
                let folder = module.folder.join(&name);
                (module.file.clone(), folder, items.clone())
            }
            None => {
                let file = file_of(module, item, &name, sources)?;
                let items = parse(&file, sources)?;
                (file.clone(), folder_of(&file), items)
            }
        };
        let child = Module {
            parent,
            path: join(&module.path, &name),
            file,
            conditions: module.conditions.and(&item.attrs),
            items,
            children: BTreeMap::new(),
            folder,
        };
        children.push((position, child));
    }
    Ok(children)
}

fn parse(file: &Path, sources: &dyn Sources) -> Result<Vec<Item>> {
    let text = sources.text(file)?;
    let parsed = syn::parse_file(&text).map_err(|error| Error::new(file, error))?;
    Ok(parsed.items)
}

fn file_of(module: &Module, item: &ItemMod, name: &str, sources: &dyn Sources) -> Result<PathBuf> {
    if let Some(path) = path_attribute(&item.attrs) {
        let folder = module.file.parent().unwrap_or(Path::new(""));
        return Ok(folder.join(path));
    }
    let beside = module.folder.join(format!("{name}.rs"));
    let within = module.folder.join(name).join("mod.rs");
    [beside, within]
        .into_iter()
        .find(|file| sources.has(file))
        .ok_or_else(|| Error::new(&module.file, format!("no file of module `{name}`")))
}

/// Returns the value of `#[path = "…"]`.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes
        .iter()
        .find_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        })
}

/// Returns the folder of the children of the module that `file` is.
fn folder_of(file: &Path) -> PathBuf {
    if file.ends_with("mod.rs") {
        file.parent().unwrap_or(Path::new("")).to_owned()
    } else {
        file.with_extension("")
    }
}

/// Returns `path::name`, or `name` alone at the root.
#[must_use]
pub fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}::{name}")
    }
}

/// The name, visibility and attributes of an item that has a name.
#[derive(Clone, Copy)]
pub struct Head<'i> {
    /// Its name.
    pub name: &'i Ident,
    /// Its visibility.
    pub visibility: &'i Visibility,
    /// Its attributes.
    pub attributes: &'i [Attribute],
}

impl<'i> Head<'i> {
    /// Returns the head of an item; none for imports, impls and calls of macros.
    #[must_use]
    pub fn of(item: &'i Item) -> Option<Self> {
        let (name, visibility, attributes) = match item {
            Item::Const(item) => (&item.ident, &item.vis, &item.attrs),
            Item::Enum(item) => (&item.ident, &item.vis, &item.attrs),
            Item::Fn(item) => (&item.sig.ident, &item.vis, &item.attrs),
            Item::Mod(item) => (&item.ident, &item.vis, &item.attrs),
            Item::Static(item) => (&item.ident, &item.vis, &item.attrs),
            Item::Struct(item) => (&item.ident, &item.vis, &item.attrs),
            Item::Trait(item) => (&item.ident, &item.vis, &item.attrs),
            Item::Type(item) => (&item.ident, &item.vis, &item.attrs),
            Item::Union(item) => (&item.ident, &item.vis, &item.attrs),
            _ => return None,
        };
        Some(Self {
            name,
            visibility,
            attributes,
        })
    }

    /// Returns true for `pub` without a restriction.
    #[must_use]
    pub fn is_public(&self) -> bool {
        matches!(self.visibility, Visibility::Public(_))
    }
}
