//! Ethernet addresses in the text form of the API.

use std::fmt;
use std::str::FromStr;

use packet::AddressError;

use crate::text::as_text;

/// An Ethernet address, written `02:00:00:00:00:01`. Configurations write the same type as Click does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddr(pub packet::MacAddr);

/// Text that is not an Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacAddrError;

impl fmt::Display for MacAddrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an Ethernet address has six bytes in hexadecimal, as in 02:00:00:00:00:01")
    }
}

impl std::error::Error for MacAddrError {}

impl MacAddr {
    /// The address of these bytes.
    pub const fn new(bytes: [u8; 6]) -> Self {
        Self(packet::MacAddr(bytes))
    }

    /// Its bytes.
    pub const fn octets(self) -> [u8; 6] {
        self.0.0
    }
}

impl FromStr for MacAddr {
    type Err = MacAddrError;

    /// Accepts `:` and `-` between any two bytes.
    fn from_str(text: &str) -> Result<Self, MacAddrError> {
        text.replace('-', ":").parse().map(Self).map_err(|_: AddressError| MacAddrError)
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.octets();
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

as_text!(MacAddr, "MacAddr", "^([0-9A-Fa-f]{1,2}[:-]){5}[0-9A-Fa-f]{1,2}$", "An Ethernet address.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        let mac = MacAddr::new([2, 0, 0, 0xab, 0, 1]);
        for text in ["02:00:00:ab:00:01", "2:0:0:AB:0:1", "02-00-00-ab-00-01", "02-0:0-ab:0-1"] {
            assert_eq!(text.parse(), Ok(mac), "{text}");
        }
        assert_eq!(mac.to_string(), "02:00:00:ab:00:01");
        for bad in
            ["", "1:2:3:4:5", "1:2:3:4:5:6:7", "1:2:3:4:5:g", "1:2:3:4:5:+6", "001:2:3:4:5:6", ":2:3:4:5:6"]
        {
            assert_eq!(bad.parse::<MacAddr>(), Err(MacAddrError), "{bad}");
        }
    }
}
