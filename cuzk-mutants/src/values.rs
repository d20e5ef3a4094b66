//! The values that a function returns in place of its own, by the type in its signature.
//!
//! The module does not know the types that a name stands for. It asks for the default of a type
//! that it does not know. A mutant whose type has none does not compile, and is dropped.

use syn::{GenericArgument, PathArguments, ReturnType, Type, TypePath};

/// The most values for one function.
const VALUES_MAX: usize = 4;

/// Functions that keep their body, apart from `const` and `unsafe` ones. Where a constructor's
/// default compiles, it is the constructor's own value. A default that asks for itself never ends.
const KEPT: [&str; 4] = ["default", "from", "from_iter", "new"];

/// Traits whose functions keep their bodies: what they print is for developers.
const KEPT_TRAITS: [&str; 1] = ["Debug"];

/// Returns true if the function of this name keeps its body. `of` is the trait of its `impl`.
#[must_use]
pub fn keeps_body(name: &str, of: Option<&str>) -> bool {
    KEPT.contains(&name) || of.is_some_and(|of| KEPT_TRAITS.contains(&of))
}

/// Returns the expressions that replace a body with this return type. `()` stands for no value.
#[must_use]
pub fn of_return(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["()".to_owned()],
        ReturnType::Type(_, of) => of_type(of),
    }
}

fn of_type(of: &Type) -> Vec<String> {
    let mut values = match of {
        Type::Path(path) => of_path(path),
        Type::Tuple(tuple) => of_tuple(tuple.elems.iter()),
        Type::Reference(reference) => of_reference(&reference.elem, reference.mutability.is_some()),
        Type::Paren(inner) => of_type(&inner.elem),
        Type::Group(inner) => of_type(&inner.elem),
        Type::Array(array) => wrapped("std::array::from_fn(|_| ", of_type(&array.elem), ")"),
        // A value of another type than the body's does not compile as `impl Trait`.
        Type::Never(_) | Type::ImplTrait(_) => Vec::new(),
        _ => default(),
    };
    values.truncate(VALUES_MAX);
    values
}

fn default() -> Vec<String> {
    vec!["Default::default()".to_owned()]
}

fn owned(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

fn wrapped(before: &str, values: Vec<String>, after: &str) -> Vec<String> {
    let wrap = |value: String| format!("{before}{value}{after}");
    values.into_iter().map(wrap).collect()
}

fn of_path(path: &TypePath) -> Vec<String> {
    let Some(last) = path.path.segments.last() else {
        return default();
    };
    let inner = || match &last.arguments {
        PathArguments::AngleBracketed(list) => {
            list.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(of) => Some(of_type(of)),
                _ => None,
            })
        }
        _ => None,
    };
    let inner = || inner().unwrap_or_else(default);
    match last.ident.to_string().as_str() {
        "bool" => owned(&["true", "false"]),
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => owned(&["0", "1"]),
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => owned(&["0", "1", "-1"]),
        "f32" | "f64" => owned(&["0.0", "1.0", "-1.0"]),
        "char" => owned(&["'x'"]),
        "String" => owned(&["String::new()", "String::from(\"xyzzy\")"]),
        "Result" => wrapped("Ok(", inner(), ")"),
        "Option" => {
            let mut values = owned(&["None"]);
            values.extend(wrapped("Some(", inner(), ")"));
            values
        }
        "Vec" => {
            let mut values = owned(&["vec![]"]);
            values.extend(wrapped("vec![", inner(), "]"));
            values
        }
        name @ ("Box" | "Arc" | "Rc" | "Mutex" | "RefCell" | "Cell") => {
            wrapped(&format!("{name}::new("), inner(), ")")
        }
        _ => default(),
    }
}

/// Returns tuples in which each component takes its first value, and then its second one.
fn of_tuple<'t>(types: impl Iterator<Item = &'t Type>) -> Vec<String> {
    let components: Vec<_> = types.map(of_type).collect();
    let most = components.iter().map(Vec::len).max().unwrap_or(1);
    let of = |at: usize| {
        let values = components
            .iter()
            .filter_map(|values| values.get(at).or(values.first()));
        values.cloned().collect::<Vec<_>>()
    };
    match components.len() {
        0 => owned(&["()"]),
        1 => wrapped("(", of_first(&components), ",)"),
        _ => (0..most)
            .map(|at| format!("({})", of(at).join(", ")))
            .collect(),
    }
}

fn of_first(components: &[Vec<String>]) -> Vec<String> {
    components.first().cloned().unwrap_or_default()
}

fn of_reference(of: &Type, is_mutable: bool) -> Vec<String> {
    let leak = |values| wrapped("Box::leak(Box::new(", values, "))");
    match of {
        Type::Path(path) if path.path.is_ident("str") && !is_mutable => {
            owned(&["\"\"", "\"xyzzy\""])
        }
        Type::Slice(slice) => {
            let mut values = owned(&["Vec::leak(Vec::new())"]);
            values.extend(wrapped("Vec::leak(vec![", of_type(&slice.elem), "])"));
            values
        }
        of => leak(of_type(of)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(output: &str) -> Vec<String> {
        of_return(&syn::parse_str(output).unwrap())
    }

    #[test]
    fn a_type_has_its_values() {
        assert_eq!(of(""), ["()"]);
        assert_eq!(of("-> bool"), ["true", "false"]);
        assert_eq!(of("-> i32"), ["0", "1", "-1"]);
        assert_eq!(of("-> Option<u8>"), ["None", "Some(0)", "Some(1)"]);
        assert_eq!(of("-> io::Result<()>"), ["Ok(())"]);
        assert_eq!(of("-> fmt::Result"), ["Ok(Default::default())"]);
        assert_eq!(of("-> &'static str"), ["\"\"", "\"xyzzy\""]);
        assert_eq!(
            of("-> (bool, Other)"),
            ["(true, Default::default())", "(false, Default::default())"]
        );
        assert_eq!(of("-> &[u8]").first().unwrap(), "Vec::leak(Vec::new())");
        // Not every element can be copied.
        assert_eq!(
            of("-> [Vec<u8>; 3]").first().unwrap(),
            "std::array::from_fn(|_| vec![])"
        );
        assert!(of("-> !").is_empty());
        assert!(of("-> impl Iterator<Item = u8>").is_empty());
    }

    #[test]
    fn a_constructor_keeps_its_body() {
        assert!(keeps_body("new", None));
        assert!(keeps_body("fmt", Some("Debug")));
        assert!(!keeps_body("fmt", Some("Display")));
    }
}
