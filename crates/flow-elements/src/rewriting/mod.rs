//! Rewriting addresses and ports by flow.

mod addresstranslator;
mod arguments;
mod flows;
mod flowset;
mod ftpportmapper;
mod handlers;
mod icmppingrewriter;
mod icmprewriter;
mod input;
mod ip6_bindings;
mod ip6_headers;
mod ipaddrpairrewriter;
mod ipaddrrewriter;
mod iprewriter;
mod iprewriterpatterns;
mod mapper;
mod mapping;
mod pattern;
mod rewriter;
mod roundrobinipmapper;
mod sequence_shifts;
mod shift_segment;
mod sourceiphashmapper;
mod states;
mod tcprewriter;
mod translate;
mod udprewriter;

use addresstranslator::AddressTranslator;
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

element::classes![
    IPRewriter,
    TCPRewriter,
    UDPRewriter,
    IPAddrRewriter,
    IPAddrPairRewriter,
    IPRewriterPatterns,
    RoundRobinIPMapper,
    SourceIPHashMapper,
    ICMPRewriter,
    ICMPPingRewriter,
    FTPPortMapper,
    AddressTranslator,
];
