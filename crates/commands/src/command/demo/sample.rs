//! The capture that both demonstrations play.

use std::io::{self, Read};

use flate2::read::GzDecoder;

/// Its name in configurations.
pub(super) const NAME: &str = "testdata/mix.pcap";

/// Its bytes, compressed: they are 17 times as long.
static COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/mix.pcap.gz"));

/// Its bytes.
pub(super) fn capture() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(COMPRESSED).read_to_end(&mut bytes)?;
    Ok(bytes)
}
