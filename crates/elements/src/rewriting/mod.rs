//! Rewriting addresses and ports by flow.

use element::Class;

mod arguments;
mod flows;
mod flowset;
mod ftpportmapper;
mod handlers;
mod icmppingrewriter;
mod icmprewriter;
mod input;
mod ipaddrpairrewriter;
mod ipaddrrewriter;
mod iprewriter;
mod iprewriterpatterns;
mod mapper;
mod mapping;
mod pattern;
mod rewriter;
mod roundrobinipmapper;
mod sourceiphashmapper;
mod splice;
mod splicing;
mod tcprewriter;
mod translate;
mod udprewriter;

use ftpportmapper::FTPPortMapper;
use icmppingrewriter::ICMPPingRewriter;
use icmprewriter::ICMPRewriter;
use ipaddrpairrewriter::IPAddrPairRewriter;
use ipaddrrewriter::IPAddrRewriter;
use iprewriter::IPRewriter;
use iprewriterpatterns::IPRewriterPatterns;
use roundrobinipmapper::RoundRobinIPMapper;
use sourceiphashmapper::SourceIPHashMapper;
use tcprewriter::TCPRewriter;
use udprewriter::UDPRewriter;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<IPRewriter>(),
    Class::of::<TCPRewriter>(),
    Class::of::<UDPRewriter>(),
    Class::of::<IPAddrRewriter>(),
    Class::of::<IPAddrPairRewriter>(),
    Class::of::<IPRewriterPatterns>(),
    Class::of::<RoundRobinIPMapper>(),
    Class::of::<SourceIPHashMapper>(),
    Class::of::<ICMPRewriter>(),
    Class::of::<ICMPPingRewriter>(),
    Class::of::<FTPPortMapper>(),
];
