//! The impls of a crate's own types, trait impls apart.

use std::path::PathBuf;

use syn::{ImplItem, Item};

use crate::modules::{Crate, Head, join};
use crate::names::{Names, Target};

/// An impl of a type without a trait.
#[derive(Clone, Debug)]
pub struct OwnImpl {
    /// The type's path, with the crate: `cuzk_core::engine::core::Core`.
    pub type_path: String,
    /// The file of the impl.
    pub file: PathBuf,
    /// The functions in it.
    pub methods: usize,
}

/// Returns the impls of a crate's own types, those of tests apart.
#[must_use]
pub fn own_impls(modules: &Crate) -> Vec<OwnImpl> {
    let names = Names::new(modules);
    let mut impls = Vec::new();
    for (id, module) in modules.modules.iter().enumerate() {
        for item in &module.items {
            let Item::Impl(item) = item else { continue };
            let needs_test = module.conditions.and(&item.attrs).needs_test();
            if item.trait_.is_some() || needs_test {
                continue;
            }
            let target = names.item_of_type(id, &item.self_ty);
            if let Some(type_path) = target.and_then(|target| path(modules, &target)) {
                let methods = item.items.iter().filter(|m| matches!(m, ImplItem::Fn(_)));
                impls.push(OwnImpl {
                    type_path,
                    file: module.file.clone(),
                    methods: methods.count(),
                });
            }
        }
    }
    impls
}

fn path(modules: &Crate, target: &Target) -> Option<String> {
    let Target::Item(module, position) = target else {
        return None;
    };
    let module = &modules.modules[*module];
    let name = Head::of(&module.items[*position])?.name.to_string();
    Some(join(&modules.name, &join(&module.path, &name)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;

    const LIB: &str = "
        mod other;
        pub struct Own<T>(T);
        type Short = Own<u8>;
        impl Short { fn one(&self) {} }
        impl Clone for Short {}
        #[cfg(test)]
        impl Short { fn in_tests(&self) {} }
    ";
    const OTHER: &str = "use super::Own as Long; impl<T> Long<T> { fn two() {} fn three() {} }";

    #[test]
    fn impls_through_other_names_are_of_one_type() {
        let sources: BTreeMap<PathBuf, String> = [("lib.rs", LIB), ("other.rs", OTHER)]
            .map(|(path, text)| (PathBuf::from(path), text.to_owned()))
            .into();
        let modules = Crate::read("made-up", Path::new("lib.rs"), &sources).unwrap();
        let impls = own_impls(&modules).into_iter();
        let found: Vec<_> = impls
            .map(|own| (own.type_path, own.file, own.methods))
            .collect();
        let expected = [("lib.rs", 1), ("other.rs", 2)]
            .map(|(file, methods)| ("made_up::Own".to_owned(), PathBuf::from(file), methods));
        assert_eq!(found, expected);
    }
}
