//! The lines of impls: methods of public types, and traits of public types.

use std::collections::BTreeMap;

use syn::punctuated::Punctuated;
use syn::{
    Attribute, Fields, GenericArgument, ImplItem, Item, ItemImpl, Meta, Path, PathArguments, Token,
    Type, Visibility,
};

use super::exports::{Exports, Place};
use super::is_hidden;
use super::signature::{constant, function, one_line, type_text, without_end};
use crate::conditions::Conditions;
use crate::modules::{Crate, ModuleId};
use crate::names::{Names, Target};

mod calls;

/// Returns the lines of all impls of a crate that concern what it exports.
pub(super) fn lines(modules: &Crate, names: Names<'_>, exports: &Exports<'_>) -> Vec<String> {
    let public = Public {
        names,
        places: &exports.places,
    };
    let mut lines = Vec::new();
    for (id, module) in modules.modules.iter().enumerate() {
        if module.conditions.needs_test() {
            continue;
        }
        for item in &module.items {
            if let Item::Impl(item) = item {
                let conditions = module.conditions.and(&item.attrs);
                if !conditions.needs_test() && !is_hidden(&item.attrs) {
                    lines.extend(public.of_impl(id, item, &conditions));
                }
            }
        }
        lines.extend(calls::lines(id, module, &public));
    }
    for (target, place) in &exports.places {
        if let Target::Item(module, position) = target {
            lines.extend(derived(&modules.modules[*module].items[*position], place));
        }
    }
    lines
}

/// The exported items.
struct Public<'p> {
    names: Names<'p>,
    places: &'p BTreeMap<Target, Place>,
}

/// The place of a name in an impl.
enum Standing<'p> {
    /// The crate exports it.
    Exported(&'p Place),
    /// The crate defines it and does not export it.
    Private,
    /// Another crate defines it.
    Foreign,
}

impl<'p> Public<'p> {
    fn standing(&self, target: Option<Target>) -> Standing<'p> {
        match target.map(|target| self.places.get(&target)) {
            Some(Some(place)) => Standing::Exported(place),
            Some(None) => Standing::Private,
            None => Standing::Foreign,
        }
    }

    fn of_path(&self, module: ModuleId, path: &Path) -> Standing<'p> {
        self.standing(self.names.item_of_path(module, path))
    }

    fn of_type(&self, module: ModuleId, ty: &Type) -> Standing<'p> {
        self.standing(self.names.item_of_type(module, ty))
    }

    fn of_impl(&self, module: ModuleId, item: &ItemImpl, conditions: &Conditions) -> Vec<String> {
        let itself = self.of_type(module, &item.self_ty);
        let Some((_, path, _)) = &item.trait_ else {
            return match itself {
                Standing::Exported(place) => methods(item, place, conditions),
                Standing::Private | Standing::Foreign => Vec::new(),
            };
        };
        let arguments = self.arguments(module, path);
        let standings = [itself, self.of_path(module, path)]
            .into_iter()
            .chain(arguments);
        let mut exported = None;
        for standing in standings {
            match standing {
                // Nobody outside can use the impl.
                Standing::Private => return Vec::new(),
                Standing::Exported(place) => exported = exported.or(Some(place)),
                Standing::Foreign => {}
            }
        }
        exported
            .map(|place| {
                let all = place.conditions.union(conditions);
                format!("{}: {all}{}", place.path, of_trait(item))
            })
            .into_iter()
            .collect()
    }

    /// Returns the standing of each type among a trait's arguments, as in
    /// `impl From<Ours> for String`.
    fn arguments(&self, module: ModuleId, path: &Path) -> Vec<Standing<'p>> {
        let last = path.segments.last().map(|last| &last.arguments);
        let Some(PathArguments::AngleBracketed(arguments)) = last else {
            return Vec::new();
        };
        arguments
            .args
            .iter()
            .filter_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(self.of_type(module, ty)),
                _ => None,
            })
            .collect()
    }
}

/// Returns the lines of the public methods and constants of a type's own impl.
fn methods(item: &ItemImpl, place: &Place, conditions: &Conditions) -> Vec<String> {
    let mut head = item.clone();
    head.attrs.clear();
    head.items.clear();
    let head = without_end(&one_line(Item::Impl(head)), " {}");
    // `impl Type` alone says nothing new.
    let is_plain = item.generics.params.is_empty() && !head.contains(['<', '&']);
    let before = if is_plain {
        String::new()
    } else {
        format!("{head}: ")
    };
    let all = place.conditions.union(conditions);
    let mut lines = Vec::new();
    for member in &item.items {
        let (name, visibility, attributes) = match member {
            ImplItem::Fn(member) => (&member.sig.ident, &member.vis, &member.attrs),
            ImplItem::Const(member) => (&member.ident, &member.vis, &member.attrs),
            _ => continue,
        };
        let conditions = all.and(attributes);
        let is_public = matches!(visibility, Visibility::Public(_));
        if !is_public || conditions.needs_test() || is_hidden(attributes) {
            continue;
        }
        let text = match member {
            ImplItem::Fn(member) => function(&member.vis, &member.sig),
            ImplItem::Const(member) => constant(&free(member)),
            _ => continue,
        };
        lines.push(format!(
            "{}::{name}: {conditions}{before}{text}",
            place.path
        ));
    }
    lines
}

/// Returns a type's constant as one outside of it, which prettyplease formats.
fn free(member: &syn::ImplItemConst) -> syn::ItemConst {
    let (name, vis, ty, expr) = (&member.ident, &member.vis, &member.ty, &member.expr);
    syn::parse_quote!(#vis const #name: #ty = #expr;)
}

/// Returns the head of a trait's impl and its associated types. The trait has its last
/// name only, so that a derived impl and a written one agree.
fn of_trait(item: &ItemImpl) -> String {
    let mut item = item.clone();
    item.attrs.clear();
    item.items.retain_mut(|member| match member {
        ImplItem::Type(member) => {
            member.attrs.clear();
            true
        }
        _ => false,
    });
    if let Some((_, path, _)) = &mut item.trait_ {
        path.leading_colon = None;
        if let Some(last) = path.segments.last().cloned() {
            path.segments = Punctuated::from_iter([last]);
        }
    }
    without_end(&one_line(Item::Impl(item)), " {}")
}

/// Returns the lines of the traits that a type derives.
fn derived(item: &Item, place: &Place) -> Vec<String> {
    let (name, generics, attributes) = match item {
        Item::Struct(item) => (&item.ident, &item.generics, &item.attrs),
        Item::Enum(item) => (&item.ident, &item.generics, &item.attrs),
        Item::Union(item) => (&item.ident, &item.generics, &item.attrs),
        _ => return Vec::new(),
    };
    // A derived impl of a generic type has bounds that the source does not show.
    let arguments = generics.split_for_impl().1;
    let ty = type_text(&syn::parse_quote!(#name #arguments));
    let verb = match generics.type_params().next() {
        Some(_) => "derive",
        None => "impl",
    };
    let start = format!("{}: {}", place.path, place.conditions);
    let mut lines = Vec::new();
    for derived in traits(attributes) {
        if derived == "Error" {
            // thiserror's.
            lines.push(format!("{start}{verb} Display for {ty}"));
            for source in converted(item) {
                lines.push(format!("{start}{verb} From<{source}> for {ty}"));
            }
        }
        lines.push(format!("{start}{verb} {derived} for {ty}"));
    }
    lines
}

/// Returns the last names of the derived traits.
fn traits(attributes: &[Attribute]) -> Vec<String> {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("derive"))
        .filter_map(|attribute| match &attribute.meta {
            Meta::List(list) => list
                .parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated)
                .ok(),
            _ => None,
        })
        .flatten()
        .filter_map(|path| path.segments.last().map(|last| last.ident.to_string()))
        .collect()
}

/// Returns the types of the fields with `#[from]`.
fn converted(item: &Item) -> Vec<String> {
    let fields: Vec<&Fields> = match item {
        Item::Struct(item) => vec![&item.fields],
        Item::Enum(item) => item.variants.iter().map(|v| &v.fields).collect(),
        _ => Vec::new(),
    };
    fields
        .into_iter()
        .flatten()
        .filter(|field| field.attrs.iter().any(|a| a.path().is_ident("from")))
        .map(|field| type_text(&field.ty))
        .collect()
}
