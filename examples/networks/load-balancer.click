// A load balancer for IPv4. Port 0 leads to two servers, port 1 to the clients.
//
// Clients connect to the virtual address $VIP. Each new TCP or UDP connection goes to the next server, all its packets
// go to the same server, and the replies come from $VIP. Servers see the address of the client. They must use $LAN_IP as
// their gateway, so that replies come back through the balancer. It answers ARP queries on both sides, and pings of its
// own addresses. IPv6 does not pass.

// The two servers, and the address that they use as their gateway.
define($SERVER_1 10.1.0.2, $SERVER_2 10.1.0.3, $LAN_IP 10.1.0.1, $LAN_NET 10.1.0.0/24, $LAN_ETH 02:00:00:00:01:01);
// The virtual address in the network of the clients, and the router to clients elsewhere.
define($VIP 10.2.0.1, $WAN_NET 10.2.0.0/24, $WAN_ETH 02:00:00:00:02:01, $GATEWAY 10.2.0.254);

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
FromDevice(1) -> wan :: Network($VIP, $WAN_ETH) -> Queue(2048) -> ToDevice(1);

// The next hop to a client: the client, or the gateway.
to_wan :: RadixIPLookup($WAN_NET 0, 0.0.0.0/0 $GATEWAY 0) -> [1] wan;

// Input 0: from clients. Input 1: from servers, only packets of known connections. `SourceIPHashMapper` in place of
// `RoundRobinIPMapper` would send all connections of a client to the same server.
servers :: RoundRobinIPMapper(- - $SERVER_1 - 0 1, - - $SERVER_2 - 0 1);
connections :: IPRewriter(servers, drop);
connections [0] -> [1] lan;
connections [1] -> to_wan;

// From clients.
wan [1] -> from_wan :: IPClassifier(dst host $VIP and icmp type echo, dst host $VIP, -);
from_wan [0] -> ICMPPingResponder -> to_wan;
from_wan [1] -> in_ttl :: DecIPTTL -> in_kind :: IPClassifier(tcp or udp, icmp, -);
from_wan [2] -> Discard;
in_ttl [1] -> ICMPError($VIP, timeexceeded, SET_FIX_ANNO false) -> to_wan;
in_kind [0] -> connections;
in_kind [1] -> ICMPRewriter(connections) -> [1] lan;
in_kind [2] -> Discard;

// From servers.
lan [1] -> from_lan :: IPClassifier(dst host $LAN_IP and icmp type echo, dst net $LAN_NET or dst host $VIP, -);
from_lan [0] -> ICMPPingResponder -> [1] lan;
from_lan [1] -> Discard;
from_lan [2] -> out_ttl :: DecIPTTL -> out_kind :: IPClassifier(tcp or udp, icmp, -);
out_ttl [1] -> ICMPError($LAN_IP, timeexceeded, SET_FIX_ANNO false) -> [1] lan;
out_kind [0] -> [1] connections;
out_kind [1] -> ICMPRewriter(connections) -> to_wan;
out_kind [2] -> Discard;
