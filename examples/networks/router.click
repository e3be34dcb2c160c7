// A router for IPv4 and IPv6. Port 0 leads to the first network, port 1 to the second.
//
// It answers ARP queries and neighbour solicitations for its addresses, resolves those of hosts and gateways, and
// decrements the time to live. It sends ICMP errors when the time to live expires, when no route leads to the
// destination, and when a packet is too long. It answers pings of its IPv4 addresses, but not of its IPv6 addresses.

// Addresses of the router in the first network.
define($LAN_IP 10.1.0.1, $LAN_NET 10.1.0.0/24, $LAN_IP6 2001:db8:1::1, $LAN_NET6 2001:db8:1::/64,
        $LAN_ETH 02:00:00:00:01:01);
// Addresses of the router in the second network.
define($WAN_IP 10.2.0.1, $WAN_NET 10.2.0.0/24, $WAN_IP6 2001:db8:2::1, $WAN_NET6 2001:db8:2::/64,
        $WAN_ETH 02:00:00:00:02:01);
define($MTU 1500);

// A network. Input 0: frames from it. Inputs 1 and 2: IPv4 and IPv6 packets for it, with the next hop as annotation.
// Output 0: frames for it. Outputs 1 and 2: IPv4 and IPv6 packets from it.
elementclass Network { $ip, $ip6, $eth |
    input [0] -> HostEtherFilter($eth, DROP_OTHER true)
        -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, 12/86dd 20/3a 54/87, 12/86dd 20/3a 54/88,
            12/86dd, -);
    arp :: ARPQuerier($ip, $eth);
    nd :: IP6NDSolicitor($ip6, $eth);
    kind [0] -> ARPResponder($ip $eth) -> [0] output;
    kind [1] -> [1] arp;
    kind [2] -> Strip(14) -> CheckIPHeader -> GetIPAddress(16) -> DropBroadcasts -> [1] output;
    kind [3] -> IP6NDAdvertiser($ip6/128 $eth) -> [0] output;
    kind [4] -> [1] nd;
    kind [5] -> Strip(14) -> CheckIP6Header -> GetIP6Address(24) -> DropBroadcasts -> [2] output;
    kind [6] -> Discard;
    // The last step before the network. ICMP errors get the address of the network that they leave by.
    input [1] -> FixIPSrc($ip) -> [0] arp;
    arp [0] -> [0] output;
    arp [1] -> [0] output;
    input [2] -> [0] nd;
    nd [0] -> [0] output;
    nd [1] -> [0] output;
}

FromDevice(0) -> lan :: Network($LAN_IP, $LAN_IP6, $LAN_ETH) -> Queue(2048) -> ToDevice(0);
FromDevice(1) -> wan :: Network($WAN_IP, $WAN_IP6, $WAN_ETH) -> Queue(2048) -> ToDevice(1);

// IPv4 routes: PREFIX [GATEWAY] OUTPUT. Output 0 is the router itself, 1 the first network, 2 the second, 3 nowhere. For
// a default route, replace the last one, for example with `0.0.0.0/0 10.2.0.254 2`.
routes :: RadixIPLookup($LAN_IP/32 0, $WAN_IP/32 0, $LAN_NET 1, $WAN_NET 2, 0.0.0.0/0 3);
lan [1] -> routes;
wan [1] -> routes;

routes [0] -> own :: IPClassifier(icmp type echo, tcp or udp, -);
own [0] -> ICMPPingResponder -> routes;
own [1] -> ICMPError($LAN_IP, unreachable, port) -> routes;
own [2] -> Discard;
routes [1] -> lan_ttl :: DecIPTTL -> lan_size :: IPFragmenter($MTU) -> [1] lan;
routes [2] -> wan_ttl :: DecIPTTL -> wan_size :: IPFragmenter($MTU) -> [1] wan;
routes [3] -> ICMPError($LAN_IP, unreachable, net) -> routes;

expired :: ICMPError($LAN_IP, timeexceeded) -> routes;
lan_ttl [1] -> expired;
wan_ttl [1] -> expired;
too_long :: ICMPError($LAN_IP, unreachable, needfrag, PMTU $MTU) -> routes;
lan_size [1] -> too_long;
wan_size [1] -> too_long;

// IPv6 routes, with the same outputs. Packets for link-local addresses are not forwarded.
routes6 :: LookupIP6Route($LAN_IP6/128 0, $WAN_IP6/128 0, $LAN_NET6 1, $WAN_NET6 2, fe80::/10 0, ::/0 3);
lan [2] -> routes6;
wan [2] -> routes6;

routes6 [0] -> Discard;
routes6 [1] -> lan_hops :: DecIP6HLIM -> lan_size6 :: CheckLength($MTU) -> [2] lan;
routes6 [2] -> wan_hops :: DecIP6HLIM -> wan_size6 :: CheckLength($MTU) -> [2] wan;
routes6 [3] -> ICMP6Error($LAN_IP6, 1, 0) -> routes6;

// An error has the address of the network that its packet came from.
lan_hops [1] -> ICMP6Error($WAN_IP6, 3, 0) -> routes6;
wan_hops [1] -> ICMP6Error($LAN_IP6, 3, 0) -> routes6;
lan_size6 [1] -> ICMP6Error($WAN_IP6, 2, 0) -> routes6;
wan_size6 [1] -> ICMP6Error($LAN_IP6, 2, 0) -> routes6;
