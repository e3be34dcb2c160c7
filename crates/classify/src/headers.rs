//! The input of a rule set: the bytes of one packet, split at its headers.

/// The bytes of one packet from each of its headers to its end.
///
/// A slice may be empty or short: a test that needs missing bytes fails, as in Click.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headers<'a> {
    /// From the link-layer header (Ethernet) to the end; empty when the packet has none.
    pub link: &'a [u8],
    /// From the network header to the end. `Classifier` puts the whole packet here.
    pub network: &'a [u8],
    /// From the transport header to the end; empty when the packet ends before it.
    pub transport: &'a [u8],
}

impl<'a> Headers<'a> {
    /// Splits `network`, the bytes from the network header to the end, after `header_length` bytes.
    #[must_use]
    #[inline]
    pub fn new(network: &'a [u8], header_length: usize) -> Self {
        Self { link: &[], network, transport: network.get(header_length..).unwrap_or_default() }
    }

    /// A packet without header annotations: every offset is relative to the first byte of `data`.
    #[must_use]
    #[inline]
    pub fn data(data: &'a [u8]) -> Self {
        Self { link: &[], network: data, transport: &[] }
    }

    /// Adds the link-layer header: `link` is the bytes from there to the end.
    #[must_use]
    #[inline]
    pub fn with_link(self, link: &'a [u8]) -> Self {
        Self { link, ..self }
    }

    /// The bytes from `base` on.
    #[must_use]
    #[inline]
    pub fn from(&self, base: Base) -> &'a [u8] {
        match base {
            Base::Link => self.link,
            Base::Network => self.network,
            Base::Transport => self.transport,
        }
    }
}

/// The header that an offset is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Base {
    /// The link-layer header.
    Link,
    /// The network header, or the first byte of the packet for `Classifier`.
    Network,
    /// The transport header.
    Transport,
}
