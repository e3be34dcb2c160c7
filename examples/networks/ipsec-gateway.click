// A gateway of a virtual private network between two sites: an IPsec tunnel (ESP) for IPv4, with AES-CBC and HMAC-SHA-1-96.
// Port 0 leads to the network of this site, port 1 to the network in between.
//
// Packets from this site for the other one are encrypted, authenticated, and sent to the other gateway. Packets from it are
// verified and decrypted, and sent to the hosts of this site. Nothing else passes: in the network in between the gateway takes
// only packets for its own address. It answers ARP queries and pings, and sends ICMP errors to the hosts of this site.
//
// The other gateway has the same file with the addresses exchanged, and $TO and $FROM exchanged. It may also be Linux, with
// states of `ip xfrm` in tunnel mode: `proto esp`, `enc "cbc(aes)"` and `auth-trunc "hmac(sha1)" KEY 96`, and the SPIs below.

// Addresses of the gateway at its site.
define($LAN_IP 10.1.0.1, $LAN_NET 10.1.0.0/24, $LAN_ETH 02:00:00:00:01:01);
// Its address in the network in between, and the other gateway and its site. If routers are between the gateways, give
// the next one: `$ROUTER 192.0.2.254`.
define($WAN_IP 192.0.2.1, $WAN_ETH 02:00:00:00:02:01, $PEER 192.0.2.2, $PEER_NET 10.2.0.0/24, $ROUTER $PEER);
// The security associations to and from the other gateway: SPI, key for encryption (16 bytes), key for authentication (20 bytes),
// first sequence number, size of the window. Replace the keys: `openssl rand -hex 16` and `openssl rand -hex 20` print new ones.
// Replace them again whenever a gateway starts anew: see RadixIPsecLookup.
define($TO 1001 00112233445566778899aabbccddeeff 00112233445566778899aabbccddeeff00112233 1 64,
        $FROM 1002 ffeeddccbbaa99887766554433221100 33221100ffeeddccbbaa99887766554433221100 1 64);
// The longest packets: of the networks, and in the tunnel, which adds at most 62 bytes.
define($MTU 1500, $TUNNEL_MTU 1438);

// A network. Input 0: frames from it. Input 1: IPv4 packets for it, with the next hop as annotation. Output 0: frames for
// it. Output 1: IPv4 packets from it.
elementclass Network { $ip, $eth |
    input [0] -> HostEtherFilter($eth, DROP_OTHER true)
        -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    arp :: ARPQuerier($ip, $eth);
    kind [0] -> ARPResponder($ip $eth) -> [0] output;
    kind [1] -> [1] arp;
    kind [2] -> Strip(14) -> CheckIPHeader -> GetIPAddress(16) -> DropBroadcasts -> [1] output;
    kind [3] -> Discard;
    input [1] -> FixIPSrc($ip) -> [0] arp;
    arp [0] -> [0] output;
    arp [1] -> [0] output;
}

FromDevice(0) -> lan :: Network($LAN_IP, $LAN_ETH) -> Queue(2048) -> ToDevice(0);
FromDevice(1) -> wan :: Network($WAN_IP, $WAN_ETH) -> Queue(2048) -> ToDevice(1);

// Outputs: 0 for packets of the tunnel, 1 into the tunnel, 2 the gateway itself, 3 the network in between, 4 this site, 5 nowhere.
routes :: RadixIPsecLookup($WAN_IP/32 0, $LAN_IP/32 2, $PEER/32 $ROUTER 3, $LAN_NET 4,
    $PEER_NET $PEER 1 $TO $FROM, 0.0.0.0/0 5);

lan [1] -> routes;
wan [1] -> IPFilter(allow dst host $WAN_IP, deny all) -> IPReassembler -> routes;

routes [0] -> StripIPHeader -> IPsecAuthHMACSHA1(1) -> IPsecAES(0) -> IPsecESPUnencap -> CheckIPHeader
    -> from_tunnel :: Counter -> routes;

routes [1] -> tunnel_ttl :: DecIPTTL -> tunnel_size :: IPFragmenter($TUNNEL_MTU) -> to_tunnel :: Counter
    -> IPsecESPEncap -> IPsecAES(1) -> IPsecAuthHMACSHA1(0) -> IPsecEncap(50) -> routes;

routes [2] -> own :: IPClassifier(icmp type echo, tcp or udp, -);
own [0] -> ICMPPingResponder -> routes;
own [1] -> ICMPError($LAN_IP, unreachable, port) -> routes;
own [2] -> Discard;

routes [3] -> [1] wan;
routes [4] -> lan_ttl :: DecIPTTL -> lan_size :: IPFragmenter($MTU) -> [1] lan;
routes [5] -> ICMPError($LAN_IP, unreachable, net) -> routes;

expired :: ICMPError($LAN_IP, timeexceeded) -> routes;
tunnel_ttl [1] -> expired;
lan_ttl [1] -> expired;
tunnel_size [1] -> ICMPError($LAN_IP, unreachable, needfrag, PMTU $TUNNEL_MTU) -> routes;
lan_size [1] -> ICMPError($LAN_IP, unreachable, needfrag, PMTU $MTU) -> routes;
