//! The lines of an item: its own, and those of its fields, variants or members.

use quote::ToTokens;
use syn::{Attribute, Field, Fields, Item, ItemEnum, ItemStruct, ItemTrait, TraitItem, Variant};
use syn::{Visibility, punctuated::Punctuated};

use super::exports::Place;
use super::is_hidden;
use super::signature::{constant, function, no_value, one_line, type_text, without_end};

/// Returns the lines of an item that is public at `place`.
pub(super) fn lines(item: &Item, place: &Place) -> Vec<String> {
    let own = |text: String| vec![line(&place.path, place, &text)];
    match item {
        Item::Const(item) => own(constant(item)),
        Item::Fn(item) => own(function(&item.vis, &item.sig)),
        Item::Static(item) => {
            let mut item = item.clone();
            item.attrs.clear();
            item.expr = Box::new(no_value());
            own(without_end(&one_line(Item::Static(item)), " = _;"))
        }
        Item::Type(item) => {
            let mut item = item.clone();
            item.attrs.clear();
            own(without_end(&one_line(Item::Type(item)), ";"))
        }
        Item::Struct(item) => of_struct(item, place),
        Item::Enum(item) => of_enum(item, place),
        Item::Trait(item) => of_trait(item, place),
        Item::Union(item) => {
            let head = item.generics.to_token_stream();
            let mut lines = own(format!("pub union {}{head}", item.ident));
            lines.extend(named_fields(item.fields.named.iter(), place));
            lines
        }
        _ => Vec::new(),
    }
}

/// Returns a line about something at `path` that is there as `place` is.
fn line(path: &str, place: &Place, text: &str) -> String {
    format!("{path}: {}{text}", place.conditions)
}

/// Returns the attributes that belong to the signature of a type.
fn marks(attributes: &[Attribute]) -> String {
    attributes
        .iter()
        .filter(|a| a.path().is_ident("non_exhaustive") || a.path().is_ident("repr"))
        .map(|attribute| {
            let text = attribute.meta.to_token_stream().to_string();
            format!("#[{}] ", text.replace(" (", "(").replace(" ,", ","))
        })
        .collect()
}

fn is_public(field: &&Field) -> bool {
    matches!(field.vis, Visibility::Public(_))
}

/// Returns a line for the struct and one for each public field with a name.
fn of_struct(item: &ItemStruct, place: &Place) -> Vec<String> {
    let mut head = item.clone();
    head.attrs.clear();
    head.fields = Fields::Unit;
    head.semi_token = Some(syn::token::Semi::default());
    let content = match &item.fields {
        Fields::Named(fields) => {
            let public = fields.named.iter().filter(is_public);
            let mut names: Vec<String> = public
                .filter_map(|field| field.ident.as_ref().map(ToString::to_string))
                .collect();
            if names.len() < fields.named.len() {
                names.push("..".to_owned());
            }
            format!(" {{ {} }}", names.join(", "))
        }
        Fields::Unnamed(fields) => {
            let types = fields.unnamed.iter().map(|field| match is_public(&field) {
                true => format!("pub {}", type_text(&field.ty)),
                false => "_".to_owned(),
            });
            format!(" ({})", types.collect::<Vec<_>>().join(", "))
        }
        Fields::Unit => String::new(),
    };
    let head = without_end(&one_line(Item::Struct(head)), ";");
    let text = format!("{}{head}{content}", marks(&item.attrs));
    let mut lines = vec![line(&place.path, place, &text)];
    if let Fields::Named(fields) = &item.fields {
        lines.extend(named_fields(fields.named.iter(), place));
    }
    lines
}

fn named_fields<'f>(
    fields: impl Iterator<Item = &'f Field>,
    place: &Place,
) -> impl Iterator<Item = String> {
    fields.filter(is_public).filter_map(|field| {
        let name = field.ident.as_ref()?;
        let conditions = place.conditions.and(&field.attrs);
        let hidden = conditions.needs_test() || is_hidden(&field.attrs);
        let ty = type_text(&field.ty);
        (!hidden).then(|| format!("{}::{name}: {conditions}pub {name}: {ty}", place.path))
    })
}

/// Returns a line for the enum and one for each variant.
fn of_enum(item: &ItemEnum, place: &Place) -> Vec<String> {
    let mut head = item.clone();
    head.attrs.clear();
    head.variants = Punctuated::new();
    let head = without_end(&one_line(Item::Enum(head)), " {}");
    let text = format!("{}{head}", marks(&item.attrs));
    let mut lines = vec![line(&place.path, place, &text)];
    for variant in &item.variants {
        let conditions = place.conditions.and(&variant.attrs);
        if !conditions.needs_test() && !is_hidden(&variant.attrs) {
            let text = variant_text(variant);
            let path = format!("{}::{}", place.path, variant.ident);
            lines.push(format!("{path}: {conditions}{text}"));
        }
    }
    lines
}

fn variant_text(variant: &Variant) -> String {
    let fields: Vec<String> = variant
        .fields
        .iter()
        .map(|field| match &field.ident {
            Some(name) => format!("{name}: {}", type_text(&field.ty)),
            None => type_text(&field.ty),
        })
        .collect();
    let fields = fields.join(", ");
    let content = match &variant.fields {
        Fields::Named(_) => format!(" {{ {fields} }}"),
        Fields::Unnamed(_) => format!("({fields})"),
        Fields::Unit => String::new(),
    };
    let value = match &variant.discriminant {
        Some((_, value)) => format!(" = {}", value.to_token_stream()),
        None => String::new(),
    };
    format!("{}{}{content}{value}", marks(&variant.attrs), variant.ident)
}

/// Returns a line for the trait and one for each of its items. A default is marked
/// by `{ .. }`.
fn of_trait(item: &ItemTrait, place: &Place) -> Vec<String> {
    let mut head = item.clone();
    head.attrs.clear();
    head.items.clear();
    let text = without_end(&one_line(Item::Trait(head.clone())), " {}");
    let mut lines = vec![line(&place.path, place, &text)];
    for member in &item.items {
        let Some((name, attributes, text)) = member_text(&head, member) else {
            continue;
        };
        let conditions = place.conditions.and(attributes);
        if !conditions.needs_test() && !is_hidden(attributes) {
            lines.push(format!("{}::{name}: {conditions}{text}", place.path));
        }
    }
    lines
}

/// Returns the name, attributes and signature of a trait's item.
fn member_text<'m>(
    head: &ItemTrait,
    member: &'m TraitItem,
) -> Option<(&'m syn::Ident, &'m [Attribute], String)> {
    match member {
        TraitItem::Fn(member) => {
            let text = function(&Visibility::Inherited, &member.sig);
            let default = member.default.as_ref().map_or("", |_| " { .. }");
            Some((&member.sig.ident, &member.attrs, format!("{text}{default}")))
        }
        TraitItem::Const(member) => {
            let mut plain = member.clone();
            plain.attrs.clear();
            plain.default = None;
            let default = member.default.as_ref().map_or("", |_| " = ..");
            let text = in_trait(head, TraitItem::Const(plain));
            Some((&member.ident, &member.attrs, format!("{text}{default}")))
        }
        TraitItem::Type(member) => {
            let mut plain = member.clone();
            plain.attrs.clear();
            let text = in_trait(head, TraitItem::Type(plain));
            Some((&member.ident, &member.attrs, text))
        }
        _ => None,
    }
}

/// Returns an item's signature: prettyplease formats it only inside of a trait.
fn in_trait(head: &ItemTrait, member: TraitItem) -> String {
    let mut whole = head.clone();
    let before = without_end(&one_line(Item::Trait(head.clone())), "}");
    whole.items.push(member);
    let line = one_line(Item::Trait(whole));
    let inner = line.strip_prefix(&before).unwrap_or(&line).trim();
    without_end(inner.strip_suffix(" }").unwrap_or(inner), ";")
}
