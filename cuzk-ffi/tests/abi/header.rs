//! The committed header equals what cbindgen makes of the sources now.

use std::path::Path;

/// The sources with functions, in the order of the header.
const SOURCES: [&str; 4] = ["error", "engine", "job", "aggregate"];

fn generated() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let sources = SOURCES.map(|name| root.join(format!("src/{name}.rs")));
    let builder = sources
        .iter()
        .fold(cbindgen::Builder::new(), |builder, source| {
            builder.with_src(source)
        });
    let mut text = Vec::new();
    builder
        .with_config(config)
        .generate()
        .unwrap()
        .write(&mut text);
    String::from_utf8(text).unwrap()
}

/// If `CUZK_WRITE_HEADER` is set to a path, writes the header there instead, for
/// `check-header.sh --write`.
#[test]
fn the_header_is_current() {
    let generated = generated();
    if let Some(path) = std::env::var_os("CUZK_WRITE_HEADER") {
        std::fs::write(path, generated).unwrap();
        return;
    }
    assert!(
        include_str!("../../include/cuzk.h") == generated,
        "include/cuzk.h is not what cbindgen makes of src: \
         run cuzk-ffi/check-header.sh --write and commit the result"
    );
}

#[test]
fn the_header_has_each_function() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = std::fs::read_dir(root.join("src")).unwrap();
    let sources = sources.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let sources: String = sources.collect();
    let exported: Vec<_> = sources
        .split("extern \"C\" fn ")
        .skip(1)
        .map(|rest| rest.split('(').next().unwrap())
        .collect();
    assert!(exported.len() > 12, "{exported:?}");
    assert_eq!(
        exported.len(),
        sources.matches("#[unsafe(no_mangle)]").count()
    );
    let header = generated();
    for name in exported {
        assert!(header.contains(&format!("{name}(")), "{name}");
    }
}
