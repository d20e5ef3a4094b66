//! Tells the program its commit, as the environment variable `CUZK_COMMIT` of the compiler.
//!
//! The variable of the build wins. Then comes the file that Cargo puts into a package, then
//! git. A build without any of them has no commit, and is no worse otherwise.

use std::path::Path;
use std::process::Command;

/// The file of a package that has its commit.
const OF_PACKAGE: &str = ".cargo_vcs_info.json";

fn main() {
    println!("cargo::rerun-if-env-changed=CUZK_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let told = std::env::var("CUZK_COMMIT").ok();
    if let Some(commit) = told.or_else(of_package).or_else(of_git) {
        println!("cargo::rustc-env=CUZK_COMMIT={}", commit.trim());
    }
}

/// Returns the commit of a package: the number after `"sha1": "`.
fn of_package() -> Option<String> {
    let text = std::fs::read_to_string(OF_PACKAGE).ok()?;
    let (_, after) = text.split_once("\"sha1\"")?;
    let number = after.split('"').nth(1)?;
    let is_commit = number.len() >= 7 && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| number.to_owned())
}

/// Returns the commit of the repository that this folder is in, if it tracks this folder.
fn of_git() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    // Both change with a commit or another branch. Cargo would run a script again and again
    // for a file that is not there.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        if Path::new(path.trim()).is_file() {
            println!("cargo::rerun-if-changed={}", path.trim());
        }
    }
    git(&["rev-parse", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    done.status.success().then_some(text)
}
