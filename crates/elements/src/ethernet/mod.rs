//! Ethernet, VLANs and ARP.

use element::Class;

mod arp;
mod arpcache;
mod arpfaker;
mod arpquerier;
mod arpresponder;
mod arptable;
mod checkarpheader;
mod ensureether;
mod etherencap;
mod ethermirror;
mod etherrewrite;
mod etherswitch;
mod ethervlanencap;
mod getetheraddress;
mod header;
mod hostetherfilter;
mod ip6ndadvertiser;
mod ip6ndsolicitor;
mod listing;
mod neighbour;
mod setvlananno;
mod storeetheraddress;
mod stripethervlanheader;
mod vlan;
mod vlandecap;
mod vlanencap;

pub use arpfaker::ARPFaker;
pub use arpquerier::ARPQuerier;
pub use arpresponder::ARPResponder;
pub use arptable::ARPTable;
pub use checkarpheader::CheckARPHeader;
pub use ensureether::EnsureEther;
pub use etherencap::EtherEncap;
pub use ethermirror::EtherMirror;
pub use etherrewrite::EtherRewrite;
pub use etherswitch::EtherSwitch;
pub use ethervlanencap::EtherVLANEncap;
pub use getetheraddress::GetEtherAddress;
pub use hostetherfilter::HostEtherFilter;
pub use ip6ndadvertiser::IP6NDAdvertiser;
pub use ip6ndsolicitor::IP6NDSolicitor;
pub use setvlananno::SetVLANAnno;
pub use storeetheraddress::StoreEtherAddress;
pub use stripethervlanheader::StripEtherVLANHeader;
pub use vlandecap::VLANDecap;
pub use vlanencap::VLANEncap;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<EtherEncap>(),
    Class::of::<EtherMirror>(),
    Class::of::<EtherRewrite>(),
    Class::of::<StoreEtherAddress>(),
    Class::of::<GetEtherAddress>(),
    Class::of::<EnsureEther>(),
    Class::of::<HostEtherFilter>(),
    Class::of::<EtherSwitch>(),
    Class::of::<VLANEncap>(),
    Class::of::<VLANDecap>(),
    Class::of::<EtherVLANEncap>(),
    Class::of::<StripEtherVLANHeader>(),
    Class::of::<SetVLANAnno>(),
    Class::of::<ARPQuerier>(),
    Class::of::<ARPResponder>(),
    Class::of::<ARPFaker>(),
    Class::of::<ARPTable>(),
    Class::of::<CheckARPHeader>(),
    Class::of::<IP6NDSolicitor>(),
    Class::of::<IP6NDAdvertiser>(),
];
