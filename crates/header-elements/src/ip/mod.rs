//! IPv4 and IPv6 headers.

mod checker;
mod checkip6header;
mod checkipheader;
mod checkipheader2;
mod decip6hlim;
mod decipttl;
mod destination;
mod faults;
mod fixipsrc;
mod gatewayoptions;
mod getip6address;
mod getipaddress;
mod headercheck;
mod ipencap;
mod ipfragmenter;
mod ipgwoptions;
mod ipinputcombo;
mod ipmirror;
mod ipoutputcombo;
mod ipreassembler;
mod ipsecencap;
mod markip6header;
mod markipce;
mod markipheader;
mod protocoltranslator46;
mod protocoltranslator64;
mod reassembly;
mod setipaddress;
mod setipchecksum;
mod setipdscp;
mod setipecn;
mod setrandipaddress;
mod storeipaddress;
mod stripipheader;
mod template;
mod translation;
mod typeofservice;
mod unstripipheader;

pub(crate) use checker::{Check, Checker};
pub use checkip6header::CheckIP6Header;
pub use checkipheader::CheckIPHeader;
pub use checkipheader2::CheckIPHeader2;
pub use decip6hlim::DecIP6HLIM;
pub use decipttl::DecIPTTL;
pub use fixipsrc::FixIPSrc;
pub use getip6address::GetIP6Address;
pub use getipaddress::GetIPAddress;
pub use ipencap::IPEncap;
pub use ipfragmenter::IPFragmenter;
pub use ipgwoptions::IPGWOptions;
pub use ipinputcombo::IPInputCombo;
pub use ipmirror::IPMirror;
pub use ipoutputcombo::IPOutputCombo;
pub use ipreassembler::IPReassembler;
pub use ipsecencap::IPsecEncap;
pub use markip6header::MarkIP6Header;
pub use markipce::MarkIPCE;
pub use markipheader::MarkIPHeader;
pub use protocoltranslator46::ProtocolTranslator46;
pub use protocoltranslator64::ProtocolTranslator64;
pub use setipaddress::SetIPAddress;
pub use setipchecksum::SetIPChecksum;
pub use setipdscp::SetIPDSCP;
pub use setipecn::SetIPECN;
pub use setrandipaddress::SetRandIPAddress;
pub use storeipaddress::StoreIPAddress;
pub use stripipheader::StripIPHeader;
pub use unstripipheader::UnstripIPHeader;

pub(crate) use destination::Destination;
pub(crate) use faults::{FaultArguments, HeaderFault};
pub(crate) use template::HeaderTemplate;

element::classes![
    CheckIPHeader,
    CheckIPHeader2,
    MarkIPHeader,
    StripIPHeader,
    UnstripIPHeader,
    DecIPTTL,
    FixIPSrc,
    GetIPAddress,
    IPFragmenter,
    IPGWOptions,
    SetIPChecksum,
    IPEncap,
    IPsecEncap,
    SetIPAddress,
    StoreIPAddress,
    SetRandIPAddress,
    SetIPDSCP,
    SetIPECN,
    IPMirror,
    IPReassembler,
    IPInputCombo,
    IPOutputCombo,
    CheckIP6Header,
    DecIP6HLIM,
    MarkIP6Header,
    GetIP6Address,
    MarkIPCE,
    ProtocolTranslator46,
    ProtocolTranslator64,
];
