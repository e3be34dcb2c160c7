//! The capture that both demonstrations play.

/// Its name in configurations, and its bytes.
pub(super) const CAPTURE: (&str, &[u8]) =
    ("testdata/mix.pcap", include_bytes!("../../../../../testdata/mix.pcap"));
