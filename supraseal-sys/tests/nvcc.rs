//! The places where the build script searches for nvcc, and the options that it gives
//! to nvcc.

#[path = "../build/nvcc.rs"]
mod nvcc;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Searches with these variables set, and with these files present.
fn find(variables: &[(&str, &str)], files: &[&str]) -> Result<PathBuf, String> {
    let variable = |name: &str| {
        let set = variables.iter().find(|(set, _)| *set == name);
        set.map(|(_, value)| OsString::from(value))
    };
    nvcc::find(variable, |path| {
        files.iter().any(|file| Path::new(file) == path)
    })
}

#[test]
fn the_first_place_that_has_one_counts() {
    let files = [
        "/n/nvcc",
        "/p2/nvcc",
        "/h/bin/nvcc",
        "/c/bin/nvcc",
        "/usr/local/cuda/bin/nvcc",
    ];
    let all = [
        ("NVCC", "/n/nvcc"),
        ("PATH", "/p1:/p2"),
        ("CUDA_HOME", "/h"),
        ("CUDA_PATH", "/c"),
    ];
    for (skipped, file) in files.iter().enumerate() {
        let variables = &all[skipped.min(all.len())..];
        assert_eq!(
            find(variables, &files),
            Ok(PathBuf::from(file)),
            "{variables:?}"
        );
    }
    let empty = [
        ("NVCC", ""),
        ("PATH", ""),
        ("CUDA_HOME", ""),
        ("CUDA_PATH", "/c"),
    ];
    assert_eq!(find(&empty, &files), Ok(PathBuf::from("/c/bin/nvcc")));
}

#[test]
fn nowhere_is_an_error_that_says_what_to_install() {
    let error = find(&[("PATH", "/p")], &["/p/gcc"]).unwrap_err();
    assert!(
        error.contains("fetch-nvcc.sh") && error.contains("CUDA"),
        "{error}"
    );
}

#[test]
fn another_compiler_than_the_one_named_is_not_taken() {
    let error = find(&[("NVCC", "/wrong"), ("PATH", "/p")], &["/p/nvcc"]).unwrap_err();
    assert!(error.contains("/wrong"), "{error}");
}

/// Searches for the runtime of the compiler `/n/bin/nvcc`.
fn find_runtime(variables: &[(&str, &str)], files: &[&str]) -> Result<nvcc::Runtime, String> {
    let variable = |name: &str| {
        let set = variables.iter().find(|(set, _)| *set == name);
        set.map(|(_, value)| OsString::from(value))
    };
    nvcc::find_runtime(Path::new("/n/bin/nvcc"), variable, |path| {
        files.iter().any(|file| Path::new(file) == path)
    })
}

fn runtime(include: &str, library: &str) -> nvcc::Runtime {
    nvcc::Runtime {
        include: PathBuf::from(include),
        library: PathBuf::from(library),
    }
}

#[test]
fn the_runtime_is_found_wherever_installations_keep_it() {
    let includes = ["include", "targets/x86_64-linux/include"];
    let libraries = ["lib64", "lib", "targets/x86_64-linux/lib"];
    let homes = [("CUDA_HOME", "/h"), ("CUDA_PATH", "/p")];
    for home in ["/n", "/h", "/p"] {
        for include in includes.map(|folder| format!("{home}/{folder}")) {
            for library in libraries.map(|folder| format!("{home}/{folder}")) {
                let header = format!("{include}/cuda_runtime_api.h");
                let archive = format!("{library}/libcudart_static.a");
                let found = find_runtime(&homes, &[&header, &archive]);
                assert_eq!(found, Ok(runtime(&include, &library)));
            }
        }
    }
}

#[test]
fn the_first_whole_runtime_counts() {
    let homes = [("CUDA_HOME", "/h"), ("CUDA_PATH", "/p")];
    let of = |home: &str| {
        ["include/cuda_runtime_api.h", "lib64/libcudart_static.a"]
            .map(|file| format!("{home}/{file}"))
    };
    let all = [of("/n"), of("/h"), of("/p")].concat();
    let files: Vec<&str> = all.iter().map(String::as_str).collect();
    for (left_out, home) in [(0, "/n"), (1, "/h"), (2, "/h"), (3, "/p"), (4, "/p")] {
        let found = find_runtime(&homes, &files[left_out..]);
        let [include, library] = ["include", "lib64"].map(|folder| format!("{home}/{folder}"));
        assert_eq!(found, Ok(runtime(&include, &library)), "{left_out}");
    }
    // An empty name counts as none: it is not the folder where cargo runs.
    let empty = [("CUDA_HOME", "")];
    let here = ["include/cuda_runtime_api.h", "lib64/libcudart_static.a"];
    assert!(find_runtime(&empty, &here).is_err());
}

#[test]
fn no_runtime_is_an_error_that_says_what_was_looked_at() {
    let error = find_runtime(&[("CUDA_PATH", "/p")], &["/n/include/cuda_runtime_api.h"]);
    let error = error.unwrap_err();
    for part in [
        "/n/bin/nvcc",
        "/n, /p",
        "cuda_runtime_api.h",
        "libcudart_static.a",
        "CUDA_HOME",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

fn gencode(asked: Option<&str>) -> Result<Vec<String>, String> {
    nvcc::architectures(asked).map(|architectures| nvcc::gencode(&architectures))
}

#[test]
fn every_architecture_gets_machine_code_and_the_lowest_ptx() {
    let default = [
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90,code=sm_90",
        "-gencode=arch=compute_120,code=sm_120",
        "-gencode=arch=compute_80,code=compute_80",
    ];
    for asked in [None, Some(""), Some("sm_120 sm_80, sm_90,80")] {
        assert_eq!(gencode(asked).unwrap(), default);
    }
    let hopper = [
        "-gencode=arch=compute_90a,code=sm_90a",
        "-gencode=arch=compute_90,code=compute_90",
    ];
    assert_eq!(gencode(Some("90a")).unwrap(), hopper);
}

#[test]
fn what_is_no_architecture_is_an_error_that_names_it() {
    for asked in ["hopper", "sm_", "sm_90x", "9.0", "sm_80,-1"] {
        let error = nvcc::architectures(Some(asked)).unwrap_err();
        assert!(
            error.contains(asked.split(',').next_back().unwrap()),
            "{error}"
        );
    }
}

#[test]
fn entries_are_read_from_ptx() {
    let ptx =
        ".visible .entry _Z3addPj(\n.param .u64 p)\n.entry _Z3mulPj()\n.func _Z1fv()\n// .ent\n";
    let names = BTreeSet::from(["_Z3addPj".to_owned(), "_Z3mulPj".to_owned()]);
    assert_eq!(nvcc::entries(ptx), names);
    assert!(nvcc::entries("").is_empty());
}

#[test]
fn the_largest_stack_is_that_of_any_kernel() {
    let said = "\
ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for a
    288 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 3072 bytes cumulative stack size
ptxas info    : Function properties for b
    192 bytes stack frame, 9999 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 80 registers, 8888 bytes smem
";
    assert_eq!(nvcc::stack_bytes(said), Ok(3072));
    let without = said.replace("3072 bytes cumulative", "no");
    assert_eq!(nvcc::stack_bytes(&without), Ok(1024));
    assert!(nvcc::stack_bytes("ptxas info    : 0 bytes gmem").is_err());
}
