//! PPP's protocol field as carried by PPPoE: two bytes, no flags, no address and control fields (RFC 1661, RFC 2516).

use core::fmt;

/// IPv4.
pub const IP4: u16 = 0x0021;
/// IPv6.
pub const IP6: u16 = 0x0057;
/// IP control protocol.
pub const IPCP: u16 = 0x8021;
/// IPv6 control protocol.
pub const IP6CP: u16 = 0x8057;
/// Link control protocol.
pub const LCP: u16 = 0xc021;
/// Password authentication.
pub const PAP: u16 = 0xc023;
/// Challenge authentication.
pub const CHAP: u16 = 0xc223;

header! {
    /// The protocol field and the payload.
    2 bytes;
    /// The protocol of the payload.
    protocol, set_protocol: u16 = 0;
}

impl<'a> View<'a> {
    /// The payload.
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.rest
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ppp {:04x}", self.protocol())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn reads_and_writes() {
        let mut bytes = [0, 0, 9];
        ViewMut::new(&mut bytes).unwrap().set_protocol(LCP);
        let view = View::new(&bytes).unwrap();
        assert_eq!((view.to_string().as_str(), view.payload()), ("ppp c021", &[9][..]));
        assert!(View::new(&[0]).is_none());
    }
}
