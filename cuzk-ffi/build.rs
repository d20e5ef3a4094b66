//! How the library for C is linked.

fn main() {
    // Programs find the library by its name and not by the path of the build.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcuzk_ffi.so");
    // `dlclose` leaves the code in memory, because threads of an engine may still run it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Functions of other crates that have names for C stay inside, and so does all of blst.
    // Otherwise the loader could join them with those of another library.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    println!("cargo::rerun-if-changed=build.rs");
}
