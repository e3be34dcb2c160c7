//! Compresses the capture of the demonstrations, which the library embeds.

use std::io::{self, Write};
use std::path::Path;
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    let capture = "../../testdata/mix.pcap";
    println!("cargo::rerun-if-changed={capture}");
    let folder = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    let compressed = fs::File::create(Path::new(&folder).join("mix.pcap.gz"))?;
    let mut encoder = GzEncoder::new(compressed, Compression::best());
    encoder.write_all(&fs::read(capture)?)?;
    encoder.finish()?;
    Ok(())
}
