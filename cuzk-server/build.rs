//! Makes the types, the clients and the servers of the protocols in `proto/`.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

const PROTOCOLS: [&str; 2] = [
    "cuzk/v1/proving_engine.proto",
    "cuzk/operator/v1/operator.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(PROTOCOLS, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        // A request of 52 MB is not copied when it is decoded.
        .bytes(".cuzk.v1.SubmitProofRequest")
        .codec_path("crate::wire::codec::MessageCodec")
        .compile_fds(descriptors)?;
    Ok(())
}
