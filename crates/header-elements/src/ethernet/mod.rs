//! Ethernet, VLANs and ARP.

mod arp;
mod arpcache;
mod arpfaker;
mod arpquerier;
mod arpresponder;
mod arptable;
mod bpdu;
mod checkarpheader;
mod ensureether;
mod etherencap;
mod ethermirror;
mod etherrewrite;
mod etherspantree;
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
mod spanningtree;
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
pub use etherspantree::EtherSpanTree;
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

element::classes![
    EtherEncap,
    EtherMirror,
    EtherRewrite,
    StoreEtherAddress,
    GetEtherAddress,
    EnsureEther,
    HostEtherFilter,
    EtherSwitch,
    EtherSpanTree,
    VLANEncap,
    VLANDecap,
    EtherVLANEncap,
    StripEtherVLANHeader,
    SetVLANAnno,
    ARPQuerier,
    ARPResponder,
    ARPFaker,
    ARPTable,
    CheckARPHeader,
    IP6NDSolicitor,
    IP6NDAdvertiser,
];
