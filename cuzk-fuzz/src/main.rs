//! Puts the inputs that guided runs kept into the files of the tree: `cargo run -p cuzk-fuzz`. The folder is
//! `CUZK_FUZZ_CORPUS`, or `target/fuzz`.

use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (decoder, inputs) in cuzk_fuzz::write_found(&cuzk_fuzz::kept_folder(), &packages)? {
        println!("{decoder}: {inputs} inputs");
    }
    Ok(())
}
