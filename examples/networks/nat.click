// A NAT gateway for IPv4. Port 0 leads to the private network, port 1 to the public one.
//
// Hosts of the private network use $LAN_IP as their gateway. Their TCP and UDP connections and pings appear to come from
// $WAN_IP. From the public network pass only replies, ICMP errors about known connections, and the forwarded port.
// The gateway answers ARP queries on both sides, and pings of its own addresses. IPv6 needs no NAT and does not pass.

// Addresses of the gateway in the private network.
define($LAN_IP 10.1.0.1, $LAN_NET 10.1.0.0/24, $LAN_ETH 02:00:00:00:01:01);
// Addresses of the gateway in the public network, and the next router.
define($WAN_IP 10.2.0.1, $WAN_NET 10.2.0.0/24, $WAN_ETH 02:00:00:00:02:01, $GATEWAY 10.2.0.254);
// TCP connections to $WAN_IP and $FORWARD_PORT go to $SERVER and $SERVER_PORT.
define($FORWARD_PORT 8080, $SERVER 10.1.0.2, $SERVER_PORT 80);

// A network. Input 0: frames from it. Input 1: IP packets for it, with the next hop as annotation. Output 0: frames for
// it. Output 1: IP packets from it.
elementclass Network { $ip, $eth |
    input [0] -> HostEtherFilter($eth, DROP_OTHER true)
        -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    arp :: ARPQuerier($ip, $eth);
    kind [0] -> ARPResponder($ip $eth) -> [0] output;
    kind [1] -> [1] arp;
    kind [2] -> Strip(14) -> CheckIPHeader -> GetIPAddress(16) -> DropBroadcasts -> [1] output;
    kind [3] -> Discard;
    input [1] -> [0] arp;
    arp [0] -> [0] output;
    arp [1] -> [0] output;
}

FromDevice(0) -> lan :: Network($LAN_IP, $LAN_ETH) -> Queue(2048) -> ToDevice(0);
FromDevice(1) -> wan :: Network($WAN_IP, $WAN_ETH) -> Queue(2048) -> ToDevice(1);

// The next hop in the public network: the destination, or the gateway.
to_wan :: RadixIPLookup($WAN_NET 0, 0.0.0.0/0 $GATEWAY 0) -> [1] wan;

// Input 0: from the private network. Input 1: from the public network, only packets of known connections. Input 2: from
// the public network, for the forwarded port.
connections :: IPRewriter(pattern $WAN_IP 1024-65535 - - 0 1, drop, pattern - - $SERVER $SERVER_PORT 1 0);
pings :: ICMPPingRewriter(pattern $WAN_IP - - - 0 1, drop);
connections [0] -> to_wan;
connections [1] -> [1] lan;
pings [0] -> to_wan;
pings [1] -> [1] lan;

// From the private network.
lan [1] -> from_lan :: IPClassifier(dst host $LAN_IP and icmp type echo, dst net $LAN_NET or dst host $WAN_IP, -);
from_lan [0] -> ICMPPingResponder -> [1] lan;
from_lan [1] -> Discard;
from_lan [2] -> out_ttl :: DecIPTTL -> out_kind :: IPClassifier(tcp or udp, icmp type echo, icmp, -);
out_ttl [1] -> ICMPError($LAN_IP, timeexceeded, SET_FIX_ANNO false) -> [1] lan;
out_kind [0] -> connections;
out_kind [1] -> pings;
out_kind [2] -> ICMPRewriter(connections pings) -> to_wan;
out_kind [3] -> Discard;

// From the public network. A server that is forwarded to must use this gateway.
wan [1] -> from_wan :: IPClassifier(dst host $WAN_IP and icmp type echo, dst host $WAN_IP, -);
from_wan [0] -> ICMPPingResponder -> to_wan;
from_wan [1] -> in_ttl :: DecIPTTL
    -> in_kind :: IPClassifier(tcp dst port $FORWARD_PORT, tcp or udp, icmp type echo-reply, icmp, -);
from_wan [2] -> Discard;
in_ttl [1] -> ICMPError($WAN_IP, timeexceeded, SET_FIX_ANNO false) -> to_wan;
in_kind [0] -> [2] connections;
in_kind [1] -> [1] connections;
in_kind [2] -> [1] pings;
in_kind [3] -> ICMPRewriter(connections pings) -> [1] lan;
in_kind [4] -> Discard;
