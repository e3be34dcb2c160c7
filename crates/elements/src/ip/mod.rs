//! IPv4 and IPv6 headers.

use element::Class;

mod checkipheader;
mod checkipheader2;
mod decipttl;
mod destination;
mod fixipsrc;
mod gatewayoptions;
mod getipaddress;
mod headercheck;
mod ipencap;
mod ipfragmenter;
mod ipgwoptions;
mod markipheader;
mod setipchecksum;
mod stripipheader;
mod tally;
mod template;
mod unstripipheader;

pub use checkipheader::CheckIPHeader;
pub use checkipheader2::CheckIPHeader2;
pub use decipttl::DecIPTTL;
pub use fixipsrc::FixIPSrc;
pub use getipaddress::GetIPAddress;
pub use ipencap::IPEncap;
pub use ipfragmenter::IPFragmenter;
pub use ipgwoptions::IPGWOptions;
pub use markipheader::MarkIPHeader;
pub use setipchecksum::SetIPChecksum;
pub use stripipheader::StripIPHeader;
pub use unstripipheader::UnstripIPHeader;

pub(crate) use destination::Destination;
pub(crate) use tally::{Reason, Tally};
pub(crate) use template::HeaderTemplate;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<CheckIPHeader>(),
    Class::of::<CheckIPHeader2>(),
    Class::of::<MarkIPHeader>(),
    Class::of::<StripIPHeader>(),
    Class::of::<UnstripIPHeader>(),
    Class::of::<DecIPTTL>(),
    Class::of::<FixIPSrc>(),
    Class::of::<GetIPAddress>(),
    Class::of::<IPFragmenter>(),
    Class::of::<IPGWOptions>(),
    Class::of::<SetIPChecksum>(),
    Class::of::<IPEncap>(),
];
