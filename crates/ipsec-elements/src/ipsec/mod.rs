//! Elements that encrypt and authenticate packets by IPsec.

mod association;
mod header;
mod ipsecaes;
mod ipsecauthhmacsha1;
mod ipsecespencap;
mod ipsecespunencap;
mod radixipseclookup;
mod replay;
mod routes;
mod transforms;

pub use ipsecaes::IPsecAES;
pub use ipsecauthhmacsha1::IPsecAuthHMACSHA1;
pub use ipsecespencap::IPsecESPEncap;
pub use ipsecespunencap::IPsecESPUnencap;
pub use radixipseclookup::RadixIPsecLookup;

element::classes![RadixIPsecLookup, IPsecESPEncap, IPsecESPUnencap, IPsecAES, IPsecAuthHMACSHA1];
